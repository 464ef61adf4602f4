package plugins_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/plugins"
	"github.com/fulmar-rpc/fulmar/examples/plugins/gen/account"
	"github.com/fulmar-rpc/fulmar/examples/plugins/gen/rooms"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestBookFirst_PassesOverTakenRooms(t *testing.T) {
	client := &rooms.MockRoomsClient{}
	client.OnBook = func(ctx context.Context, request *rooms.BookRequest) (*rooms.Booking, error) {
		if request.Room == "A1" {
			return nil, &rooms.Taken{Room: request.Room}
		}
		return &rooms.Booking{Number: 7, Room: request.Room}, nil
	}
	booking, err := plugins.BookFirst(t.Context(), client, 3, "A1", "B2", "C3")
	if err != nil || booking.Room != "B2" {
		t.Errorf("booked %v, %v", booking, err)
	}
	if calls := client.BookCalls(); len(calls) != 2 || calls[1].Request.People != 3 {
		t.Errorf("calls %+v", calls)
	}
}

func TestBookFirst_ReturnsFailures(t *testing.T) {
	client := &rooms.MockRoomsClient{}
	client.BookReturns(nil, fulmar.NewError(fulmar.Unavailable, "closed"))
	if _, err := plugins.BookFirst(t.Context(), client, 3, "A1", "B2"); fulmar.CodeOf(err) != fulmar.Unavailable {
		t.Errorf("%v", err)
	}
	if calls := client.BookCalls(); len(calls) != 1 {
		t.Errorf("%d calls", len(calls))
	}
}

func TestMock_SaysWhatIsNotSet(t *testing.T) {
	err := (&rooms.MockRooms{}).Cancel(t.Context(), 7)
	if fulmar.CodeOf(err) != fulmar.Unimplemented || !strings.Contains(err.Error(), "mock of Rooms.cancel: OnCancel is not set") {
		t.Errorf("%v", err)
	}
}

// TestValidated_RefusesBeforeTheHandler serves a mock behind the checks of the
// definition, and calls it over a connection.
func TestValidated_RefusesBeforeTheHandler(t *testing.T) {
	mock := &rooms.MockRooms{}
	mock.BookReturns(&rooms.Booking{Number: 7}, nil)
	mock.CancelReturns(nil)
	client := serve(t, rooms.ValidatedRoomsServer(mock))
	for _, test := range []struct {
		request rooms.BookRequest
		want    string
	}{
		{rooms.BookRequest{Room: "A1", People: 2}, ""},
		{rooms.BookRequest{Room: "first", People: 2}, `request.room: "first" does not match ^[A-Z][0-9]+$ (validate.pattern)`},
		{rooms.BookRequest{Room: "A1"}, "request.people: 0 is not at least 1 (validate.min)"},
		{rooms.BookRequest{Room: "A1", People: 13}, "request.people: 13 is not at most 12 (validate.max)"},
	} {
		_, err := client.Book(t.Context(), &test.request)
		if test.want == "" {
			if err != nil {
				t.Errorf("%+v: %v", test.request, err)
			}
		} else if fulmar.CodeOf(err) != fulmar.InvalidArgument || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %s", test.request, err, test.want)
		}
	}
	if err := client.Cancel(t.Context(), 0); fulmar.CodeOf(err) != fulmar.InvalidArgument {
		t.Errorf("cancel: %v", err)
	}
	if len(mock.BookCalls()) != 1 || len(mock.CancelCalls()) != 0 {
		t.Errorf("the handler got %d and %d calls", len(mock.BookCalls()), len(mock.CancelCalls()))
	}
}

func TestValidate_CountsCharacters(t *testing.T) {
	request := &rooms.BookRequest{Room: "A1", People: 1}
	request.Note.Set(strings.Repeat("ü", 200))
	if err := request.Validate(); err != nil {
		t.Error(err)
	}
	request.Note.Set(strings.Repeat("ü", 201))
	if err := request.Validate(); err == nil || err.Error() != "note: 201 characters are not at most 200 (validate.max_length)" {
		t.Error(err)
	}
}

// TestValidate_PassesOverNil: nil as the value of a map is refused when it is written.
func TestValidate_PassesOverNil(t *testing.T) {
	team := &account.Team{Members: map[string]*account.Account{"nobody": nil, "ada": {Name: "Ada"}}}
	if err := team.Validate(); err != nil {
		t.Error(err)
	}
	team.Members["ada"].Name = ""
	if err := team.Validate(); err == nil || err.Error() != `members["ada"].name: is empty (validate.required)` {
		t.Error(err)
	}
}

// TestOwnGenerator_KeepsSecrets looks at what the plugin of cmd/generate does.
func TestOwnGenerator_KeepsSecrets(t *testing.T) {
	user := &account.Account{Name: "Ada", Password: "1815"}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("login", "account", user)
	text, err := json.Marshal(user)
	if err != nil || strings.Contains(log.String(), "1815") || strings.Contains(string(text), "1815") || !strings.Contains(log.String(), "account.name=Ada") {
		t.Errorf("%s%s %v", log.String(), text, err)
	}
	if err := (&account.Account{}).Validate(); err == nil || err.Error() != "name: is empty (validate.required)" {
		t.Errorf("%v", err)
	}
}

// serve serves until the end of the test and returns a client.
func serve(t *testing.T, implementation rooms.RoomsServer) rooms.RoomsClient {
	t.Helper()
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "localhost:0"})
	if err != nil {
		t.Fatal(err)
	}
	rooms.RegisterRoomsServer(server, implementation)
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := errors.Join(client.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return rooms.NewRoomsClient(client)
}
