package roundtrip_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods/parcel"
)

// keeping keeps all that it gets, and answers with it.
type keeping struct {
	gate
	mu     sync.Mutex
	orders []viewmethods.OrderView
}

func (k *keeping) Pass(_ context.Context, order viewmethods.OrderView) (viewmethods.OrderView, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.orders = append(k.orders, order)
	return order, nil
}

func (k *keeping) Seen(ctx context.Context, order viewmethods.OrderView) error {
	_, err := k.Pass(ctx, order)
	return err
}

// numbered returns an order that its id tells apart from all others, byte by byte.
func numbered(id int64) *viewmethods.Order {
	random := rand.New(rand.NewPCG(uint64(id), 0))
	order := &viewmethods.Order{ID: id, Region: string(randomLetters(random, random.IntN(100)))}
	for range random.IntN(4) {
		order.Parcels = append(order.Parcels, parcel.Parcel{Address: string(randomLetters(random, 20))})
	}
	if n := []int{0, 5000, 40_000}[id%3]; n > 0 {
		order.Image = randomLetters(random, n)
	}
	return order
}

func randomLetters(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	first := random.IntN(20)
	for i := range b {
		b[i] = 'a' + byte((first+i)%26)
	}
	return b
}

// TestViewMethods_CallsThatAreGivenUp has callers that cancel while their requests are
// sent, read, kept and answered: what was kept is what was sent, and who waited gets what
// is his.
func TestViewMethods_CallsThatAreGivenUp(t *testing.T) {
	const callers, calls = 8, 30
	for name, config := range map[string]fulmar.ClientConfig{
		"TTHeader": {}, "framed": {Protocol: fulmar.Framed}, "local": {},
	} {
		t.Run(name, func(t *testing.T) {
			k := &keeping{}
			server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			viewmethods.RegisterGateServer(server, k)
			address, err := server.Listen()
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- server.Serve(context.Background()) }()
			if config.Target = address.String(); name == "local" {
				config = fulmar.ClientConfig{Local: server}
			}
			client, err := fulmar.NewClient(config)
			if err != nil {
				t.Fatal(err)
			}
			api := viewmethods.NewGateClient(client)
			var all sync.WaitGroup
			for caller := range callers {
				all.Go(func() {
					for i := range calls {
						callAndCancel(t, api, int64(caller*calls+i))
					}
				})
			}
			all.Wait()
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			if err := server.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
			if len(k.orders) < callers*calls/3 {
				t.Errorf("only %d orders arrived", len(k.orders))
			}
			for _, order := range k.orders {
				wantOrder(t, order, numbered(order.ID()))
			}
		})
	}
}

// callAndCancel makes a call that somebody cancels at any time, or nobody.
func callAndCancel(t *testing.T, api viewmethods.GateClient, id int64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	order := numbered(id)
	v := viewOf(t, order)
	v.SetRegion(order.Region) // so that it is put together
	switch id % 4 {
	case 0:
		go cancel()
	case 1:
		if err := api.Seen(ctx, v); err != nil {
			t.Errorf("order %d: %v", id, err)
		}
		return
	}
	switch answer, err := api.Pass(ctx, v); {
	case err == nil:
		wantOrder(t, answer, order)
	case id%4 != 0 || fulmar.CodeOf(err) != fulmar.Canceled:
		t.Errorf("order %d: %v", id, err)
	}
	// Whatever became of the call, the view is the caller's.
	wantOrder(t, v, order)
}
