package fulmar_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// lasting is a feed whose lists go on until their callers are gone.
func lasting() *feed {
	return &feed{list: func(item *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
		if err := stream.Send(item); err != nil {
			return err
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}}
}

// eachDirectWay runs a test with virtual time for each way without a proxy, which would have
// the same policies.
func eachDirectWay(t *testing.T, service *feed, client fulmar.ClientConfig, test func(t *testing.T, s *streaming)) {
	t.Helper()
	for _, way := range directWays {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newStreaming(t, way, service, fulmar.ServerConfig{}, client)) })
		})
	}
}

// TestPolicy_TimeoutOfStreams: one that a policy has for the method or its service is of all
// of the stream, one for all methods is of calls, and the option goes before both.
func TestPolicy_TimeoutOfStreams(t *testing.T) {
	const limit, longer = 3 * time.Second, 10 * time.Second
	named := func(name string, timeout time.Duration) policy.Client {
		return policy.Client{Method: policy.Method{Timeout: time.Second}, Methods: map[string]policy.Method{name: {Timeout: timeout}}}
	}
	for name, test := range map[string]struct {
		document policy.Client
		options  []fulmar.CallOption
		want     time.Duration
	}{
		"method":          {named("Feed.list", limit), nil, limit},
		"service":         {named("Feed", limit), nil, limit},
		"another method":  {named("Feed.fill", limit), nil, longer},
		"all":             {policy.Client{Method: policy.Method{Timeout: limit}}, nil, longer},
		"switched off":    {named("Feed.list", -1), nil, longer},
		"shorter option":  {named("Feed.list", limit), []fulmar.CallOption{fulmar.Timeout(time.Second)}, time.Second},
		"longer option":   {named("Feed.list", limit), []fulmar.CallOption{fulmar.Timeout(longer)}, longer},
		"option for ever": {named("Feed.list", limit), []fulmar.CallOption{fulmar.Timeout(-1)}, longer},
	} {
		t.Run(name, func(t *testing.T) {
			eachDirectWay(t, lasting(), fulmar.ClientConfig{Policy: test.document}, func(t *testing.T, s *streaming) {
				// Whoever has no limit is given up by his caller.
				ctx, cancel := context.WithTimeout(t.Context(), longer)
				defer cancel()
				began := time.Now()
				list, err := s.api.List(ctx, &testservice.Item{Count: 1}, test.options...)
				for err == nil {
					_, err = list.Recv()
				}
				if took := time.Since(began); fulmar.CodeOf(err) != fulmar.DeadlineExceeded || took != test.want {
					t.Errorf("%v after %v, want %v", err, took, test.want)
				}
			})
		})
	}
}

// TestPolicy_TimeoutOfStreamsChanges with the document that holds when a stream begins.
func TestPolicy_TimeoutOfStreamsChanges(t *testing.T) {
	eachDirectWay(t, lasting(), fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		ended := make(chan time.Duration, 1)
		open := func() {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			list, err := s.api.List(ctx, &testservice.Item{Count: 1})
			for err == nil {
				_, err = list.Recv()
			}
			ended <- time.Since(began)
		}
		go open()
		synctest.Wait()
		if err := s.client.SetPolicy(policy.Client{Methods: map[string]policy.Method{"Feed": {Timeout: time.Second}}}); err != nil {
			t.Fatal(err)
		}
		go open()
		if later := <-ended; later != time.Second {
			t.Errorf("the later stream took %v", later)
		}
		if first := <-ended; first != time.Minute {
			t.Errorf("the first stream took %v", first)
		}
	})
}

// TestExplain_StreamsOneInSoMany: the explanation of a stream comes when it has ended, once,
// with how it ended.
func TestExplain_StreamsOneInSoMany(t *testing.T) {
	for name, test := range map[string]struct {
		code fulmar.Code
		end  func(list fulmar.ServerStreamingClient[testservice.Item]) error
	}{
		"received": {0, func(list fulmar.ServerStreamingClient[testservice.Item]) (err error) {
			for err == nil {
				_, err = list.Recv()
			}
			return err
		}},
		"canceled": {fulmar.Canceled, func(list fulmar.ServerStreamingClient[testservice.Item]) error {
			list.Cancel()
			list.Cancel()
			return io.EOF
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, way := range directWays {
				t.Run(way, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var explained []policy.Explanation
						s := newStreaming(t, way, &feed{}, fulmar.ServerConfig{}, fulmar.ClientConfig{
							ExplainEvery: 2, OnExplanation: func(e *policy.Explanation) { explained = append(explained, *e) },
						})
						for range 4 {
							list, err := s.api.List(t.Context(), &testservice.Item{Count: 3})
							if err != nil {
								t.Fatal(err)
							}
							before := len(explained)
							elapse(time.Second)
							if len(explained) != before {
								t.Error("a stream is explained that goes on")
							}
							if err := test.end(list); err != io.EOF {
								t.Error(err)
							}
						}
						if len(explained) != 2 {
							t.Fatalf("%d streams are explained", len(explained))
						}
						for _, e := range explained {
							if e.Service != "Feed" || e.Method != "list" || fulmar.Code(e.Code) != test.code || e.Len() != 1 || e.Duration < time.Second {
								t.Errorf("%v", &e)
							}
						}
					})
				})
			}
		})
	}
}

// TestExplain_StreamsThatDoNotOpen are explained at once, and breakers among the reasons.
func TestExplain_StreamsThatDoNotOpen(t *testing.T) {
	var texts []string
	config := fulmar.ClientConfig{ExplainEvery: 1, OnExplanation: func(e *policy.Explanation) { texts = append(texts, e.String()) }}
	config.Policy.TargetBreaker = policy.Breaker{FailurePercent: 100, MinCalls: 2}
	withSeveral(t, 2, config, func(s *several) {
		texts = nil
		for range 3 {
			if _, err := testservice.NewFeedClient(s.client).Swap(context.Background()); fulmar.CodeOf(err) != fulmar.Unavailable {
				t.Errorf("%v", err)
			}
		}
		if len(texts) != 3 || strings.Count(texts[0], "again after 0s: not executed") != 1 || !strings.Contains(texts[2], "refused: ") {
			t.Errorf("%q", texts)
		}
	})
}

// TestExplain_StreamsBelongToTheCaller: what a caller asked for tells how the stream was
// opened, and does not change when it ends, which may be on another goroutine.
func TestExplain_StreamsBelongToTheCaller(t *testing.T) {
	eachDirectWay(t, lasting(), fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		var e policy.Explanation
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := s.api.List(ctx, &testservice.Item{}, fulmar.Explain(&e)); err != nil {
			t.Fatal(err)
		}
		opened := e.String()
		elapse(time.Second)
		cancel()
		synctest.Wait()
		if e.Len() != 1 || e.String() != opened {
			t.Errorf("%v, and before %s", &e, opened)
		}
	})
}

// TestPolicy_StreamsSayThatTheyAreTriedAgain, as calls do: whoever serves one does not try
// again himself.
func TestPolicy_StreamsSayThatTheyAreTriedAgain(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC} {
		config := fulmar.ClientConfig{Protocol: protocol, Policy: policy.Client{Method: policy.Method{Retry: policy.Retry{Attempts: 3}}}}
		config.Policy.Balancing.Method = "round_robin"
		withSeveral(t, 2, config, func(s *several) {
			said := make(chan string, 1)
			service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
				call, _ := fulmar.CallFrom(stream.Context())
				all := ""
				for key, value := range call.Metadata().AllPersistent() {
					all += strings.ToLower(key) + "=" + value
				}
				said <- all
				return nil
			}}
			s.serveAny(func(registrar fulmar.Registrar) { testservice.RegisterFeedServer(registrar, service) }, s.addresses[0])
			again := 0
			for range 4 {
				var e policy.Explanation
				swap, err := testservice.NewFeedClient(s.client).Swap(context.Background(), fulmar.Explain(&e))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := swap.Recv(); err != io.EOF {
					t.Error(err)
				}
				want := ""
				if e.Len() == 2 {
					again++
					want = "retryreq=1"
				}
				if got := <-said; got != want {
					t.Errorf("%v: attempt %d says %q", protocol, e.Len(), got)
				}
			}
			if again == 0 {
				t.Errorf("%v: nothing was tried again", protocol)
			}
		})
	}
}
