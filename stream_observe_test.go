package fulmar_test

import (
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
)

// observing returns configurations that tell recorders.
func observing(atServer, atClient observe.Observer) (fulmar.ServerConfig, fulmar.ClientConfig) {
	return fulmar.ServerConfig{Observers: []observe.Observer{atServer}}, fulmar.ClientConfig{Observers: []observe.Observer{atClient}}
}

// TestStreams_Observed: both sides are told of each message, and of how many there were.
func TestStreams_Observed(t *testing.T) {
	for _, way := range directWays {
		synctest.Test(t, func(t *testing.T) {
			metrics := observe.NewMetrics(observe.MetricsConfig{})
			atServer, atClient := new(recorder), new(recorder)
			server, client := observing(atServer.observer(), atClient.observer())
			client.Observers = append(client.Observers, metrics.Observer())
			s := newStreaming(t, way, &feed{}, server, client)
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := swap.Send(&testservice.Item{Name: "it"}); err != nil {
					t.Fatal(err)
				}
				if _, err := swap.Recv(); err != nil {
					t.Fatal(err)
				}
			}
			if err := swap.CloseSend(); err != nil {
				t.Error(err)
			}
			if _, err := swap.Recv(); err != io.EOF {
				t.Error(err)
			}
			synctest.Wait()
			use := "shared"
			if way == "local" {
				use = "local"
			}
			if got, want := atClient.phases(0), "started, picked, connected "+use+", message sent, message arrived, message sent, message arrived, done"; got != want {
				t.Errorf("%s: the client tells\n%s, want\n%s", way, got, want)
			}
			if got, want := atServer.phases(0), "started, first byte, received, message arrived, message sent, message arrived, message sent, handled, done"; got != want {
				t.Errorf("%s: the server tells\n%s, want\n%s", way, got, want)
			}
			for side, r := range map[string]*recorder{"server": atServer, "client": atClient} {
				r.check(t)
				done := r.done(t, 0)
				if done.Code != 0 || done.MessagesOut != 2 || done.MessagesIn != 2 || done.BytesOut < 2*len("it") || done.BytesIn < done.BytesOut {
					t.Errorf("%s: the %s ends with %+v", way, side, done)
				}
			}
			if counted := metrics.Snapshot(); len(counted) != 1 || counted[0].MessagesIn != 2 || counted[0].MessagesOut != 2 || counted[0].InFlight != 0 {
				t.Errorf("%s: counted %+v", way, counted)
			}
		})
	}
}

// TestStreams_ObservedWhereNobodyListens: an attempt that fails is told of too.
func TestStreams_ObservedWhereNobodyListens(t *testing.T) {
	atClient := new(recorder)
	client, err := fulmar.NewClient(fulmar.ClientConfig{
		Target: "static:///127.0.0.1:1,127.0.0.1:2", Protocol: fulmar.GRPC, Observers: []observe.Observer{atClient.observer()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := testservice.NewFeedClient(client).Swap(t.Context()); fulmar.CodeOf(err) != fulmar.Unavailable {
		t.Errorf("opened: %v", err)
	}
	if got, want := atClient.phases(0), "started, picked, retried, picked, done"; got != want {
		t.Errorf("told: %s, want %s", got, want)
	}
	if done := atClient.done(t, 0); done.Attempt != 2 || done.Err == nil || done.Executed != "no" {
		t.Errorf("it ends with %+v", done)
	}
}

// TestStreams_ObserversThatMisbehave: one that panics, ends its goroutine or the stream keeps
// nobody from being told the end, once, and last.
func TestStreams_ObserversThatMisbehave(t *testing.T) {
	what := map[string]func(call *observe.Call, cancel func()){
		"panics":             func(*observe.Call, func()) { panic("observer") },
		"ends its goroutine": func(*observe.Call, func()) { runtime.Goexit() },
		"ends the stream":    func(_ *observe.Call, cancel func()) { cancel() },
	}
	for name, misbehave := range what {
		for _, way := range directWays {
			synctest.Test(t, func(t *testing.T) {
				var swap fulmar.BidiStreamingClient[testservice.Item, testservice.Item]
				atServer, atClient := new(recorder), new(recorder)
				server, client := observing(atServer.observer(), observe.Observer{
					Phases: observe.SetOf(observe.PhaseSent, observe.PhaseArrived),
					Event:  func(call *observe.Call, _ any, _ observe.Event) { misbehave(call, swap.Cancel) },
				})
				server.Observers = append(server.Observers, observe.Observer{
					Phases: observe.SetOf(observe.PhaseSent),
					Event:  func(call *observe.Call, _ any, _ observe.Event) { misbehave(call, func() {}) },
				})
				client.Observers = append(client.Observers, atClient.observer())
				client.Logger = slog.New(slog.DiscardHandler)
				s := newStreaming(t, way, &feed{}, server, client)
				var err error
				if swap, err = s.api.Swap(t.Context()); err != nil {
					t.Fatal(err)
				}
				var both sync.WaitGroup
				both.Go(func() {
					for range 3 {
						if swap.Send(&testservice.Item{Name: "it"}) != nil {
							return
						}
					}
				})
				both.Go(func() {
					for {
						if _, err := swap.Recv(); err != nil {
							return
						}
					}
				})
				synctest.Wait()
				swap.Cancel()
				both.Wait()
				synctest.Wait()
				for side, r := range map[string]*recorder{"server": atServer, "client": atClient} {
					if len(r.calls) != 1 {
						t.Fatalf("%s, who %s: the %s was told of %d calls", way, name, side, len(r.calls))
					}
					r.done(t, 0)
					if told := r.phases(0); strings.Count(told, "done") != 1 {
						t.Errorf("%s, who %s: the %s tells %s", way, name, side, told)
					}
				}
			})
		}
	}
}

// TestStreams_ObservedByManyGoroutines: what several goroutines tell comes one at a time, and
// none is lost.
func TestStreams_ObservedByManyGoroutines(t *testing.T) {
	for _, way := range directWays {
		synctest.Test(t, func(t *testing.T) { observedByMany(t, way) })
	}
}

func observedByMany(t *testing.T, way string) {
	const count = 200
	busy, sent, arrived := false, 0, 0 // Unguarded: events come one at a time.
	var at []observe.Phase
	observer := observe.Observer{Event: func(_ *observe.Call, _ any, event observe.Event) {
		if busy {
			t.Error("told of two events at a time")
		}
		busy = true
		switch event.Phase {
		case observe.PhaseSent:
			sent++
		case observe.PhaseArrived:
			arrived++
		}
		runtime.Gosched()
		at = append(at, event.Phase)
		busy = false
	}}
	s := newStreaming(t, way, &feed{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Observers: []observe.Observer{observer}})
	swap, err := s.api.Swap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	both.Go(func() {
		for range count {
			if err := swap.Send(&testservice.Item{Name: "it"}); err != nil {
				t.Error(err)
			}
		}
		if err := swap.CloseSend(); err != nil {
			t.Error(err)
		}
	})
	both.Go(func() {
		for {
			if _, err := swap.Recv(); err != nil {
				if err != io.EOF {
					t.Error(err)
				}
				return
			}
		}
	})
	both.Wait()
	if sent != count || arrived != count || at[len(at)-1] != observe.PhaseDone {
		t.Errorf("%s: told of %d messages sent and %d arrived, at last %v", way, sent, arrived, at[len(at)-1])
	}
}
