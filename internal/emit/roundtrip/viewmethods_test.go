package roundtrip_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods/parcel"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// gate answers with views of what it was given, and keeps those.
type gate struct {
	closed error
	orders []viewmethods.OrderView
	stored string
	lend   func(ctx context.Context, order viewmethods.OrderView, key string) (viewmethods.OrderView, error)
	pass   func(order viewmethods.OrderView) (viewmethods.OrderView, error)
}

func (g *gate) Pass(_ context.Context, order viewmethods.OrderView) (viewmethods.OrderView, error) {
	if g.pass != nil {
		return g.pass(order)
	}
	g.orders = append(g.orders, order)
	order.SetRegion("passed " + order.Region())
	return order, g.closed
}

func (g *gate) Take(_ context.Context, order viewmethods.OrderView) (*viewmethods.Order, error) {
	taken, err := order.Struct()
	return taken, errors.Join(err, g.closed)
}

func (g *gate) Give(_ context.Context, id int64) (order viewmethods.OrderView, _ error) {
	order.SetID(id)
	return order, g.closed
}

func (g *gate) Plain(_ context.Context, order *viewmethods.Order) (*viewmethods.Order, error) {
	return order, g.closed
}

func (g *gate) Store(_ context.Context, key string, order viewmethods.OrderView, more []viewmethods.Order, preset *viewmethods.Order, choice viewmethods.ChoiceView) error {
	g.stored = strings.Join([]string{key, order.String(), choice.String(), preset.String(), more[0].String()}, "; ")
	return g.closed
}

func (g *gate) Seen(_ context.Context, order viewmethods.OrderView) error {
	g.orders = append(g.orders, order)
	return nil
}

func (g *gate) Name(_ context.Context, choice viewmethods.ChoiceView) (string, error) {
	return choice.Name(), g.closed
}

func (g *gate) All(context.Context) ([]viewmethods.Order, error) { return nil, g.closed }

func (g *gate) Lend(ctx context.Context, order viewmethods.OrderView, key string) (viewmethods.OrderView, error) {
	if g.lend == nil {
		return order, g.closed
	}
	return g.lend(ctx, order, key)
}

func (g *gate) Weigh(_ context.Context, p parcel.ParcelView) (parcel.ParcelView, error) {
	p.SetGrams(5)
	return p, g.closed
}

func orderOf(region string, parcels int) *viewmethods.Order {
	order := &viewmethods.Order{ID: 7, Region: region, Image: []byte(strings.Repeat(region, 3))}
	for range parcels {
		order.Parcels = append(order.Parcels, parcel.Parcel{Address: "somewhere in " + region, Notes: []string{"a", "b"}})
	}
	return order
}

func viewOf(t *testing.T, order *viewmethods.Order) viewmethods.OrderView {
	t.Helper()
	v, err := viewmethods.NewOrderView(order)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantOrder(t *testing.T, got viewmethods.OrderView, want *viewmethods.Order) {
	t.Helper()
	if s, err := got.Struct(); err != nil || !s.Equal(want) {
		t.Errorf("it is %.300v, %v; want %.300v", s, err, want)
	}
}

func TestViewMethods_Calls(t *testing.T) {
	g, network := &gate{}, &loopback{}
	viewmethods.RegisterGateServer(network, g)
	api, ctx := viewmethods.NewGateClient(network), t.Context()
	order := orderOf("north", 3)
	passed, err := api.Pass(ctx, viewOf(t, order))
	if err != nil {
		t.Fatal(err)
	}
	want := order.Clone()
	want.Region = "passed north"
	wantOrder(t, passed, want)
	if taken, err := api.Take(ctx, viewOf(t, order)); err != nil || !taken.Equal(order) {
		t.Errorf("taken: %v, %v", taken, err)
	}
	if given, err := api.Give(ctx, 9); err != nil || given.ID() != 9 || given.HasImage() {
		t.Errorf("given: %v, %v", given, err)
	}
	if plain, err := api.Plain(ctx, order); err != nil || !plain.Equal(order) {
		t.Errorf("plain: %v, %v", plain, err)
	}
	var choice viewmethods.ChoiceView
	choice.SetName("n")
	if name, err := api.Name(ctx, choice); err != nil || name != "n" {
		t.Errorf("name: %q, %v", name, err)
	}
	if err := api.Store(ctx, "k", viewOf(t, order), []viewmethods.Order{{ID: 2}}, &viewmethods.Order{ID: 3}, choice); err != nil {
		t.Error(err)
	}
	wantText := strings.Join([]string{"k", order.String(), choice.String(), "viewmethods.Order(id: 3, region: \"\", parcels: [])", "viewmethods.Order(id: 2, region: \"\", parcels: [])"}, "; ")
	if g.stored != wantText {
		t.Errorf("stored %s, want %s", g.stored, wantText)
	}
	if err := api.Seen(ctx, viewOf(t, order)); err != nil {
		t.Error(err)
	}
	wantOrder(t, g.orders[len(g.orders)-1], order)
	var p parcel.ParcelView
	p.SetAddress("a")
	if weighed, err := api.Weigh(ctx, p); err != nil || weighed.Grams() != 5 || weighed.Address() != "a" {
		t.Errorf("weighed: %v, %v", weighed, err)
	}
}

func TestViewMethods_Exceptions(t *testing.T) {
	g, network := &gate{closed: &viewmethods.Closed{Until: "noon"}}, &loopback{}
	viewmethods.RegisterGateServer(network, g)
	api := viewmethods.NewGateClient(network)
	_, err := api.Pass(t.Context(), viewOf(t, orderOf("north", 1)))
	if closed, ok := errors.AsType[*viewmethods.Closed](err); !ok || closed.Until != "noon" {
		t.Errorf("passed: %v", err)
	}
	given, err := api.Give(t.Context(), 1)
	if closed, ok := errors.AsType[*viewmethods.Closed](err); !ok || closed.Until != "noon" || given.HasImage() {
		t.Errorf("given: %v, %v", given, err)
	}
	g.closed = nil
	// The required address is missing in a view that was never loaded.
	if _, err := api.Weigh(t.Context(), parcel.ParcelView{}); err == nil || !strings.Contains(err.Error(), "address") {
		t.Errorf("a view without what is required: %v", err)
	}
	empty := &viewmethods.GatePassResult{}
	if err := empty.ReplyError(); err == nil {
		t.Error("a reply without a result is none")
	}
}

// TestViewMethods_WireIsThatOfStructs: either side can have either form.
func TestViewMethods_WireIsThatOfStructs(t *testing.T) {
	order := orderOf("south", 20)
	v := viewOf(t, order)
	for name, both := range map[string][2]thrift.Struct{
		"request": {&viewmethods.GatePlainArgs{Order: order}, &viewmethods.GatePassArgs{Order: v}},
		"reply":   {&viewmethods.GatePlainResult{Success: order}, &viewmethods.GatePassResult{Success: &v}},
	} {
		plain, err := thrift.Marshal(both[0])
		if err != nil {
			t.Fatal(err)
		}
		passed, err := thrift.Marshal(both[1])
		if err != nil || !bytes.Equal(plain, passed) {
			t.Errorf("%s: %x, %v; want %x", name, passed, err, plain)
		}
	}
	if a, b := (&viewmethods.GatePlainArgs{Order: order}).String(), (&viewmethods.GatePassArgs{Order: v}).String(); strings.TrimPrefix(a, "viewmethods.GatePlainArgs(order: ") != strings.TrimPrefix(b, "viewmethods.GatePassArgs(order: viewmethods.Order") {
		t.Errorf("texts for logs: %s and %s", a, b)
	}
}

// TestViewMethods_RefuseWhatStructsRefuse damages messages in each byte, and cuts them at
// each.
func TestViewMethods_RefuseWhatStructsRefuse(t *testing.T) {
	message, err := thrift.Marshal(&viewmethods.GatePlainArgs{Order: orderOf("x", 2)})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	check := func(b []byte) {
		t.Helper()
		plain, passed := &viewmethods.GatePlainArgs{}, &viewmethods.GatePassArgs{}
		plainErr, passedErr := thrift.Unmarshal(b, plain), thrift.Unmarshal(b, passed)
		if (plainErr == nil) != (passedErr == nil) {
			t.Fatalf("%x: struct %v, view %v", b, plainErr, passedErr)
		}
		if plainErr != nil {
			refused++
			plainAt, ok := errors.AsType[*thrift.Error](plainErr)
			passedAt, also := errors.AsType[*thrift.Error](passedErr)
			if !ok || !also || plainAt.Kind != passedAt.Kind || plainAt.Offset != passedAt.Offset {
				t.Fatalf("%x: struct %v, view %v", b, plainErr, passedErr)
			}
			return
		}
		s, err := passed.Order.Struct()
		if err != nil || !s.Equal(plain.Order) {
			t.Fatalf("%x: struct %v, view %v, %v", b, plain.Order, s, err)
		}
	}
	for i := range message {
		check(message[:i])
		for _, damage := range []byte{0x01, 0x80, 0xff} {
			damaged := bytes.Clone(message)
			damaged[i] ^= damage
			check(damaged)
		}
	}
	if refused < len(message) {
		t.Errorf("%d messages were refused, want more than those that are cut", refused)
	}
}

// serveGate serves g, on a port and in the process.
func serveGate(t testing.TB, g viewmethods.GateServer, config fulmar.ServerConfig) (server *fulmar.Server, address string) {
	t.Helper()
	config.Address = "127.0.0.1:0"
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	viewmethods.RegisterGateServer(server, g)
	bound, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return server, bound.String()
}

// gateClients returns clients of a server of g, by how they reach it.
func gateClients(t *testing.T, g *gate) map[string]viewmethods.GateClient {
	t.Helper()
	server, address := serveGate(t, g, fulmar.ServerConfig{})
	clients := map[string]viewmethods.GateClient{}
	for name, config := range map[string]fulmar.ClientConfig{
		"TTHeader": {Target: address, Protocol: fulmar.TTHeader},
		"framed":   {Target: address, Protocol: fulmar.Framed},
		"bare":     {Target: address, Protocol: fulmar.Bare},
		"local":    {Local: server},
	} {
		client, err := fulmar.NewClient(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		clients[name] = viewmethods.NewGateClient(client)
	}
	return clients
}

// TestViewMethods_OwnWhatTheyReferTo keeps views of requests and of replies, short and
// long, while others are sent over the same connection.
func TestViewMethods_OwnWhatTheyReferTo(t *testing.T) {
	g := &gate{}
	for name, api := range gateClients(t, g) {
		t.Run(name, func(t *testing.T) {
			g.orders = nil
			var sent []*viewmethods.Order
			var answers []viewmethods.OrderView
			for round, region := range []string{"north", "south", "east", "west"} {
				for _, parcels := range []int{0, 10, 400, 3000, 30000, 150_000} {
					order := orderOf(region, parcels)
					order.ID = int64(round)
					answer, err := api.Pass(t.Context(), viewOf(t, order))
					if err != nil {
						t.Fatal(err)
					}
					sent, answers = append(sent, order), append(answers, answer)
				}
			}
			for i, order := range sent {
				wantOrder(t, g.orders[i], order)
				order.Region = "passed " + order.Region
				wantOrder(t, answers[i], order)
			}
		})
	}
}

// TestViewMethods_RefusalsAreThoseOfStructs sends what is no struct.
func TestViewMethods_RefusalsAreThoseOfStructs(t *testing.T) {
	server, _ := serveGate(t, &gate{}, fulmar.ServerConfig{Logger: slog.New(slog.DiscardHandler)})
	client, err := fulmar.NewClient(fulmar.ClientConfig{Local: server})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	message, err := thrift.Marshal(&viewmethods.GatePlainArgs{Order: orderOf("x", 2)})
	if err != nil {
		t.Fatal(err)
	}
	for length := range len(message) {
		var errs [2]*fulmar.Error
		for i, name := range []string{"plain", "pass"} {
			method, err := fulmar.RawMethod("Gate", name, false)
			if err != nil {
				t.Fatal(err)
			}
			request, reply := fulmar.Raw(append(bytes.Clone(message[:length]), 0xff)), fulmar.Raw{}
			if errs[i], _ = errors.AsType[*fulmar.Error](client.Call(t.Context(), method, &request, &reply)); errs[i] == nil {
				t.Fatalf("%d bytes: %s did not refuse them", length, name)
			}
		}
		plain, passed := errs[0], errs[1]
		if plain.Code() != passed.Code() || plain.Executed() != passed.Executed() || passed.Executed() != fulmar.ExecutedNo {
			t.Errorf("%d bytes: struct %v (%v), view %v (%v)", length, plain, plain.Executed(), passed, passed.Executed())
		}
	}
}

func TestViewMethods_InterceptorsSeeViews(t *testing.T) {
	var seen []string
	look := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		request, err := call.Request()
		if err != nil {
			return err
		}
		seen = append(seen, reflect.TypeOf(request).Elem().Name())
		if args, ok := request.(*viewmethods.GatePassArgs); ok {
			args.Order.SetRegion(args.Order.Region() + "+")
		}
		return next(ctx, call)
	}
	server, _ := serveGate(t, &gate{}, fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{look}})
	client, err := fulmar.NewClient(fulmar.ClientConfig{Local: server, Interceptors: []fulmar.UnaryInterceptor{look}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	passed, err := viewmethods.NewGateClient(client).Pass(t.Context(), viewOf(t, orderOf("r", 0)))
	if err != nil || passed.Region() != "passed r++" {
		t.Errorf("passed: %v, %v", passed, err)
	}
	if want := []string{"GatePassArgs", "GatePassArgs"}; !reflect.DeepEqual(seen, want) {
		t.Errorf("seen %v, want %v", seen, want)
	}
}

// TestViewMethods_NothingIsLeftOfTheCallBefore: a server uses the memory of requests and
// replies again.
func TestViewMethods_NothingIsLeftOfTheCallBefore(t *testing.T) {
	g := &gate{}
	server, _ := serveGate(t, g, fulmar.ServerConfig{})
	client, err := fulmar.NewClient(fulmar.ClientConfig{Local: server})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	api := viewmethods.NewGateClient(client)
	without, err := fulmar.RawMethod("Gate", "pass", false)
	if err != nil {
		t.Fatal(err)
	}
	giveWithout, err := fulmar.RawMethod("Gate", "give", false)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := api.Pass(t.Context(), viewOf(t, orderOf("north", 3))); err != nil {
			t.Fatal(err)
		}
		request, reply := fulmar.Raw{0}, fulmar.Raw{} // no arguments at all
		if err := client.Call(t.Context(), without, &request, &reply); err != nil {
			t.Fatal(err)
		}
		var result viewmethods.GatePassResult
		if err := thrift.Unmarshal(reply, &result); err != nil || result.Success == nil {
			t.Fatal(err)
		}
		wantOrder(t, g.orders[len(g.orders)-1], &viewmethods.Order{})
		wantOrder(t, *result.Success, &viewmethods.Order{Region: "passed "})
		if given, err := api.Give(t.Context(), 9); err != nil || given.ID() != 9 || given.Region() != "" {
			t.Errorf("given: %v, %v", given, err)
		}
		var given viewmethods.GateGiveResult
		if err := client.Call(t.Context(), giveWithout, &request, &reply); err != nil {
			t.Fatal(err)
		}
		if err := thrift.Unmarshal(reply, &given); err != nil || given.Success == nil || given.Success.ID() != 0 {
			t.Errorf("given without an id: %v, %v", given.Success, err)
		}
		g.closed = &viewmethods.Closed{Until: "Monday"}
		if _, err := api.Give(t.Context(), 1); err == nil {
			t.Error("no exception")
		}
		g.closed = nil
	}
}

// TestViewMethods_NoCallSeesAnother has calls at the same time end in every way in which they
// can, while what they keep of their views is looked at and changed.
func TestViewMethods_NoCallSeesAnother(t *testing.T) {
	const callers, each = 4, 60
	type kept struct {
		id   int64
		view viewmethods.OrderView
	}
	var mu sync.Mutex
	var keeps []kept
	region := func(id int64) string { return strings.Repeat("r", 1+int(id%97)) }
	g := &gate{pass: func(order viewmethods.OrderView) (viewmethods.OrderView, error) {
		id := order.ID()
		mu.Lock()
		keeps = append(keeps, kept{id, order})
		mu.Unlock()
		order.SetRegion("passed " + order.Region())
		switch id % 7 {
		case 0:
			return order, errors.New("no")
		case 1:
			return order, &viewmethods.Closed{Until: "noon"}
		case 2:
			panic("no")
		case 3:
			runtime.Goexit()
		}
		return order, nil
	}}
	t.Run("calls", func(t *testing.T) { // at the end of which the server stops
		number := int64(0)
		for name, api := range gateClients(t, g) {
			for range callers {
				number++
				first := 1000 * number
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					for i := range int64(each) {
						id := first + i
						order := orderOf(region(id), int(id%50))
						order.ID = id
						answer, err := api.Pass(t.Context(), viewOf(t, order))
						if (err == nil) != (id%7 > 3) || err == nil && (answer.ID() != id || answer.Region() != "passed "+region(id)) {
							t.Errorf("call %d: %v, %v", id, answer, err)
						}
					}
				})
			}
		}
	})
	if calls := 4 * callers * each; len(keeps) != calls {
		t.Errorf("%d of %d calls have come", len(keeps), calls)
	}
	for _, k := range keeps {
		if k.view.ID() != k.id || k.view.Region() != region(k.id) {
			t.Errorf("what call %d has kept is %v", k.id, k.view)
		}
	}
}
