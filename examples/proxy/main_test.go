package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// shop is what is behind the proxy. It writes its messages by hand: the proxy knows
// no definition either.
type shop struct {
	deadline time.Time
	trace    string
	hop      bool
}

// outOfStock is a result with a declared exception: field 1, a struct whose field 2
// is an i32.
var outOfStock = fulmar.Raw{12, 0, 1, 8, 0, 2, 0, 0, 0, 5, 0, 0}

func (s *shop) handle(ctx context.Context, request fulmar.Raw) (fulmar.Raw, error) {
	call, _ := fulmar.CallFrom(ctx)
	s.deadline, _ = call.Deadline()
	s.trace, _ = call.Metadata().Persistent("TRACE_ID")
	_, s.hop = call.Metadata().Transient("HOP")
	switch call.Method() {
	case "place":
		return outOfStock, nil
	case "pay":
		return nil, fulmar.NewBusinessError(1001, "limit reached", nil)
	}
	return request, fulmar.SetReplyMetadata(ctx, "SERVED_BY", "shop-3")
}

// begin serves until the test ends, and returns where.
func begin(t *testing.T, behind *shop) (address string) {
	t.Helper()
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", UnknownHandler: behind.handle})
	if err != nil {
		t.Fatal(err)
	}
	listening, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	untilTheEnd(t, server.Serve)
	return listening.String()
}

// untilTheEnd runs serve until the test ends.
func untilTheEnd(t *testing.T, serve func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// written is what the program writes, a line an element.
type written chan string

func (w written) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

// forward runs the program until the test ends, and returns where it listens and
// what it writes after that.
func forward(t *testing.T, to string, protocol fulmar.Protocol) (address string, lines written) {
	t.Helper()
	lines = make(written, 100)
	untilTheEnd(t, func(ctx context.Context) error {
		return run(ctx, "127.0.0.1:0", fulmar.ClientConfig{
			Target: to, Protocol: protocol, Caller: "proxy", ConnectTimeout: time.Minute,
			Timeout: time.Hour, // longer than calls have, which shows if they get it
		}, lines)
	})
	return strings.Fields(<-lines)[2], lines
}

func TestRun_ForwardsEveryCall(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.Bare, fulmar.Framed, fulmar.TTHeader, fulmar.TTHeaderFramed} {
		t.Run(protocol.String(), func(t *testing.T) {
			behind := &shop{}
			address, lines := forward(t, begin(t, behind), protocol)
			client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address, ConnectTimeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			checkCalls(t, client, behind, protocol == fulmar.TTHeader || protocol == fulmar.TTHeaderFramed)
			for _, want := range []string{"Shop.list: passed on\n", "Shop.place: passed on\n", "limit reached"} {
				if got := <-lines; !strings.Contains(got, want) {
					t.Errorf("the program wrote %q, want %q", got, want)
				}
			}
		})
	}
}

func checkCalls(t *testing.T, client *fulmar.Client, behind *shop, carried bool) {
	t.Helper()
	const wait = time.Minute
	end := time.Now().Add(wait)
	ctx, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	ctx = fulmar.WithTransient(fulmar.WithPersistent(ctx, "TRACE_ID", "4bf92f35"), "HOP", "proxy")
	var back map[string]string
	// Field 1, a string of 100,000 bytes.
	long := slices.Concat(fulmar.Raw{11, 0, 1, 0, 1, 0x86, 0xa0}, bytes.Repeat([]byte{'x'}, 100_000), []byte{0})
	got, err := callRaw(ctx, client, "list", long, fulmar.ReceiveMetadata(&back))
	if err != nil || !bytes.Equal(got, long) {
		t.Fatalf("%d other bytes came back, %v", len(got), err)
	}
	if kept := behind.trace == "4bf92f35" && back["SERVED_BY"] == "shop-3" && !behind.deadline.IsZero(); kept != carried {
		t.Errorf("behind the proxy: trace %q, deadline %v; back came %v", behind.trace, behind.deadline, back)
	}
	if behind.hop {
		t.Error("a transient pair went further than one hop")
	}
	// What travels is how long, so the way adds to it; but the proxy does not begin anew
	// with the timeout of its client.
	if latest := time.Now().Add(wait); behind.deadline.After(latest) {
		t.Errorf("behind the proxy the deadline is %v later", behind.deadline.Sub(latest))
	}
	empty := fulmar.Raw{0}
	if got, err := callRaw(ctx, client, "place", empty); err != nil || !bytes.Equal(got, outOfStock) {
		t.Errorf("a declared exception arrives as % x, %v", got, err)
	}
	var business *fulmar.BusinessError
	if _, err := callRaw(ctx, client, "pay", empty); errors.As(err, &business) != carried || err == nil {
		t.Errorf("a business error arrives as %v", err)
	}
}

// callRaw calls a method of the shop.
func callRaw(ctx context.Context, client *fulmar.Client, name string, request fulmar.Raw, options ...fulmar.CallOption) (reply fulmar.Raw, err error) {
	method, err := fulmar.RawMethod("Shop", name, false)
	if err != nil {
		return nil, err
	}
	err = client.Call(ctx, method, &request, &reply, options...)
	return reply, err
}

func TestRun_RefusesAWrongTarget(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), "127.0.0.1:0", fulmar.ClientConfig{Target: "nowhere"}, &out); err == nil || out.Len() > 0 {
		t.Errorf("%v, and it wrote %s", err, out.String())
	}
	if err := run(t.Context(), "nowhere", fulmar.ClientConfig{Target: "127.0.0.1:1"}, &out); err == nil || out.Len() > 0 {
		t.Errorf("%v, and it wrote %s", err, out.String())
	}
}
