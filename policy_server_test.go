package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// limited is a server with a policy whose calls wait for release, and a client of it in
// each protocol.
func limited(t *testing.T, document policy.Server, protocol fulmar.Protocol) (r *running, api testservice.EchoClient, release chan struct{}) {
	t.Helper()
	release = make(chan struct{})
	r = serve(t, fulmar.ServerConfig{Policy: document}, &testservice.Stub{
		OnAdd: func(ctx context.Context, left, right int32) (int32, error) { return left + right, nil },
		OnEcho: func(ctx context.Context, m *testservice.Message) (*testservice.Message, error) {
			<-release
			return m, nil
		},
		OnNothing: func(context.Context) error { return nil },
	})
	return r, dial(t, fulmar.ClientConfig{Target: r.address, Protocol: protocol}), release
}

// wantOverLimit checks that a call was refused by a limit that its error names.
func wantOverLimit(t *testing.T, err error, text string) {
	t.Helper()
	if e := asError(t, err); e.Code() != fulmar.ResourceExhausted || e.Executed() != fulmar.ExecutedNo || !strings.Contains(err.Error(), text) {
		t.Errorf("%v; want what names %q", err, text)
	}
}

// TestServerPolicy_PerSecond: all protocols, and each limit by itself.
func TestServerPolicy_PerSecond(t *testing.T) {
	limit := policy.Limit{PerSecond: 1, Burst: 3}
	for name, test := range map[string]struct {
		document policy.Server
		text     string
		// others says that another method is not limited.
		others bool
	}{
		"server":  {policy.Server{Limit: limit}, "limit of the server: 1 calls in a second (the next one in ", false},
		"caller":  {policy.Server{CallerLimit: limit}, "limit of the caller: 1 calls in a second", false},
		"service": {policy.Server{Methods: map[string]policy.Limit{"Echo": limit}}, "limit of Echo: 1 calls in a second", false},
		"method":  {policy.Server{Methods: map[string]policy.Limit{"Echo.add": limit}}, "limit of Echo.add: 1 calls in a second", true},
	} {
		for _, protocol := range append([]fulmar.Protocol{fulmar.GRPC}, allProtocols...) {
			t.Run(name+" "+protocol.String(), func(t *testing.T) {
				_, api, _ := limited(t, test.document, protocol)
				began := time.Now()
				var refused error
				calls := 0
				for ; refused == nil && calls < 1000; calls++ {
					_, refused = api.Add(context.Background(), 1, 2)
				}
				if most := 4 + int(time.Since(began)/time.Second); calls < 4 || calls > most {
					t.Errorf("call %d is the first that was refused", calls)
				}
				if protocol == fulmar.Bare || protocol == fulmar.Framed {
					// They carry no codes.
					if !strings.Contains(refused.Error(), test.text) {
						t.Errorf("%v; want what names %q", refused, test.text)
					}
				} else {
					wantOverLimit(t, refused, test.text)
				}
				if err := api.Nothing(context.Background()); (err == nil) != test.others && time.Since(began) < time.Second {
					t.Errorf("another method: %v", err)
				}
			})
		}
	}
}

// TestServerPolicy_RefusedCallsTakeNothingOfOthers: what a caller, or a method, is refused
// does not count against what all share.
func TestServerPolicy_RefusedCallsTakeNothingOfOthers(t *testing.T) {
	all, own := policy.Limit{PerSecond: 1, Burst: 100}, policy.Limit{PerSecond: 1, Burst: 5}
	for name, document := range map[string]policy.Server{
		"caller":            {Limit: all, CallerLimit: own},
		"caller of method":  {CallerLimit: own, Methods: map[string]policy.Limit{"Echo.add": all, "Echo.nothing": all}},
		"method":            {Limit: all, Methods: map[string]policy.Limit{"Echo.add": own}},
		"method of service": {Methods: map[string]policy.Limit{"Echo": all, "Echo.add": own}},
	} {
		t.Run(name, func(t *testing.T) {
			r, greedy, _ := limited(t, document, fulmar.TTHeader)
			refused := 0
			for range 200 {
				if _, err := greedy.Add(context.Background(), 1, 2); err != nil {
					refused++
				}
			}
			if refused < 150 {
				t.Errorf("%d calls were refused", refused)
			}
			// Another caller, by its address: all of 127.0.0.0/8 is this machine.
			other := dial(t, fulmar.ClientConfig{Target: r.address, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
				return dialer.DialContext(ctx, network, address)
			}})
			if err := other.Nothing(context.Background()); err != nil {
				t.Errorf("another caller, another method: %v", err)
			}
			if name == "caller of method" {
				if _, err := other.Add(context.Background(), 1, 2); err != nil {
					t.Errorf("another caller, the same method: %v", err)
				}
			}
		})
	}
}

// TestServerPolicy_Running: what runs counts until it has ended, and then no more.
func TestServerPolicy_Running(t *testing.T) {
	for name, test := range map[string]struct {
		document policy.Server
		text     string
	}{
		"server": {policy.Server{Limit: policy.Limit{Running: 2}}, "limit of the server: too many at once (limit 2)"},
		"caller": {policy.Server{CallerLimit: policy.Limit{Running: 2}}, "limit of the caller: too many at once (limit 2)"},
		"method": {policy.Server{Methods: map[string]policy.Limit{"Echo.echo": {Running: 2}}}, "limit of Echo.echo: too many at once (limit 2)"},
	} {
		t.Run(name, func(t *testing.T) {
			r, api, release := limited(t, test.document, fulmar.TTHeader)
			for range 3 {
				ended := make(chan error, 2)
				for range 2 {
					go func() {
						_, err := api.Echo(context.Background(), &testservice.Message{})
						ended <- err
					}()
				}
				eventually(t, func() bool { return r.server.Stats().Calls == 2 })
				_, err := api.Echo(context.Background(), &testservice.Message{})
				wantOverLimit(t, err, test.text)
				for range 2 {
					release <- struct{}{}
				}
				for range 2 {
					if err := <-ended; err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TestServerPolicy_RunningStreams: a stream counts for as long as it lasts.
func TestServerPolicy_RunningStreams(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC} {
		t.Run(protocol.String(), func(t *testing.T) {
			limit := policy.Server{Methods: map[string]policy.Limit{"Feed": {Running: 1}}}
			r := serveAny(t, fulmar.ServerConfig{Policy: limit}, func(registrar fulmar.Registrar) { testservice.RegisterFeedServer(registrar, waitingFeed{}) })
			api := testservice.NewFeedClient(dialAny(t, fulmar.ClientConfig{Target: r.address, Protocol: protocol}))
			for range 3 {
				ctx, cancel := context.WithCancel(context.Background())
				first, err := api.List(ctx, &testservice.Item{})
				if err == nil {
					_, err = first.Recv()
				}
				if err != nil {
					t.Fatal(err)
				}
				second, err := api.List(context.Background(), &testservice.Item{})
				if err == nil {
					_, err = second.Recv()
				}
				wantOverLimit(t, err, "limit of Feed: too many at once (limit 1)")
				cancel()
				eventually(t, func() bool { return r.server.Stats().Calls == 0 })
			}
		})
	}
}

// waitingFeed sends an item, and then nothing until its caller is gone.
type waitingFeed struct{ testservice.FeedServer }

func (waitingFeed) List(item *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
	if err := stream.Send(item); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// TestServerPolicy_RefusedByAdmission: a call that the server itself refuses hands back
// what it has taken.
func TestServerPolicy_RefusedByAdmission(t *testing.T) {
	release := make(chan struct{})
	r := serve(t, fulmar.ServerConfig{MaxCalls: 1, Policy: policy.Server{Limit: policy.Limit{Running: 2}}}, &testservice.Stub{
		OnEcho: func(_ context.Context, m *testservice.Message) (*testservice.Message, error) {
			<-release
			return m, nil
		},
	})
	api := dial(t, fulmar.ClientConfig{Target: r.address})
	ended := make(chan error, 1)
	go func() {
		_, err := api.Echo(context.Background(), &testservice.Message{})
		ended <- err
	}()
	eventually(t, func() bool { return r.server.Stats().Calls == 1 })
	for range 20 {
		_, err := api.Echo(context.Background(), &testservice.Message{})
		wantOverLimit(t, err, "1 calls are running (limit 1)")
	}
	release <- struct{}{}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServer_SetPolicy changes limits while calls are served.
func TestServer_SetPolicy(t *testing.T) {
	r, api, _ := limited(t, policy.Server{}, fulmar.TTHeader)
	for range 20 {
		if _, err := api.Add(context.Background(), 1, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.server.SetPolicy(policy.Server{Methods: map[string]policy.Limit{"Echo.add": {PerSecond: 1, Burst: 1}}}); err != nil {
		t.Fatal(err)
	}
	_, first := api.Add(context.Background(), 1, 2)
	_, second := api.Add(context.Background(), 1, 2)
	if first != nil {
		t.Error(first)
	}
	wantOverLimit(t, second, "limit of Echo.add")
	if err := r.server.SetPolicy(policy.Server{Limit: policy.Limit{PerSecond: 2_000_000_000}}); err == nil {
		t.Error("a wrong policy was taken")
	}
	if err := r.server.SetPolicy(policy.Server{}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := api.Add(context.Background(), 1, 2); err != nil {
			t.Fatal(err)
		}
	}
	if _, version, source := r.server.Policy(); version != 2 || source != "SetPolicy" {
		t.Errorf("version %d from %s", version, source)
	}
}

// TestPolicyFile_IsReadAgain: what is wrong changes nothing and is logged whole.
func TestPolicyFile_IsReadAgain(t *testing.T) {
	t.Parallel() // it waits most of its time
	file := filepath.Join(t.TempDir(), "policy.json")
	write := func(text string) {
		t.Helper()
		next := file + ".next"
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fulmar.NewServer(fulmar.ServerConfig{PolicyFile: file}); err == nil || !strings.Contains(err.Error(), "PolicyFile: "+file+": no such file") {
		t.Errorf("without a file: %v", err)
	}
	write(`{"server": {"limit": {"per_second": "many"}}, "client": {"retry": {"attempts": 3, "idempotent": true}, "colour": 1}}`)
	if _, err := fulmar.NewClient(fulmar.ClientConfig{Target: "localhost:1", PolicyFile: file}); err == nil ||
		!strings.Contains(err.Error(), "server.limit.per_second") || !strings.Contains(err.Error(), `unknown field "colour"`) {
		t.Errorf("with a wrong file: %v", err)
	}
	write(`{"server": {"limit": {"per_second": 1, "burst": 1}}, "client": {"retry": {"attempts": 3, "idempotent": true, "backoff_min": "10us"}}}`)
	stub, count := failingCalls(fulmar.Unavailable, -1)
	stub.OnNothing = func(context.Context) error { return nil }
	limited := serve(t, fulmar.ServerConfig{PolicyFile: file}, stub)
	plain := serve(t, fulmar.ServerConfig{}, stub)
	client := dialAny(t, fulmar.ClientConfig{Target: plain.address, PolicyFile: file})
	attempts := func() int64 {
		count.Store(0)
		_, _ = testservice.NewEchoClient(client).Add(context.Background(), 1, 2)
		return count.Load()
	}
	if n := attempts(); n != 3 {
		t.Errorf("%d attempts with the first file", n)
	}
	nothing := dial(t, fulmar.ClientConfig{Target: limited.address})
	if err := errors.Join(nothing.Nothing(context.Background()), nothing.Nothing(context.Background())); fulmar.CodeOf(err) != fulmar.ResourceExhausted {
		t.Errorf("the first file of the server: %v", err)
	}
	write(`{"client": {"retry": {"attempts": 4, "idempotent": true, "backoff_min": "10us"}}}`)
	eventually(t, func() bool { _, version, _ := client.Policy(); return version == 2 })
	if n := attempts(); n != 4 {
		t.Errorf("%d attempts with the second file", n)
	}
	eventually(t, func() bool { _, version, _ := limited.server.Policy(); return version == 2 })
	if err := errors.Join(nothing.Nothing(context.Background()), nothing.Nothing(context.Background())); err != nil {
		t.Errorf("the second file of the server: %v", err)
	}
	write(`{"client": {"retry": {"attempts": -9, "backoff_max": "1 week"}}, "sever": {}}`)
	eventually(t, func() bool { return strings.Contains(limited.log.String(), "policy file refused") })
	for _, part := range []string{"client.retry.backoff_max", "sever"} {
		if !strings.Contains(limited.log.String(), part) {
			t.Errorf("the log does not say what is wrong with %s: %s", part, limited.log.String())
		}
	}
	if n := attempts(); n != 4 {
		t.Errorf("%d attempts behind a wrong file", n)
	}
}

// TestPolicySource delivers documents, fails, panics and goes on.
func TestPolicySource(t *testing.T) {
	documents := make(chan string)
	stub, count := failingCalls(fulmar.Unavailable, -1)
	log := &logRecorder{}
	client := dialAny(t, fulmar.ClientConfig{
		Target: serve(t, fulmar.ServerConfig{}, stub).address, Logger: slog.New(slog.NewTextHandler(log, nil)),
		PolicySource: func(ctx context.Context, deliver func([]byte, string)) error {
			for version := 0; ; version++ {
				select {
				case document := <-documents:
					switch document {
					case "fail":
						return errors.New("connection refused")
					case "panic":
						panic("broken")
					}
					deliver([]byte(document), fmt.Sprint(version))
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		},
	})
	attempts := func() int64 {
		count.Store(0)
		_, _ = testservice.NewEchoClient(client).Add(context.Background(), 1, 2)
		return count.Load()
	}
	document := `{"client": {"retry": {"attempts": %d, "idempotent": true, "backoff_min": "10us"}}}`
	for _, text := range []string{fmt.Sprintf(document, 2), "fail", "panic", "{", fmt.Sprintf(document, 3)} {
		documents <- text
	}
	eventually(t, func() bool { _, version, _ := client.Policy(); return version == 2 })
	if n := attempts(); n != 3 {
		t.Errorf("%d attempts", n)
	}
	for _, part := range []string{"connection refused", "the source panicked: broken", "policy refused; the last one stays"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log does not have %q: %s", part, log.String())
		}
	}
}

// eventually waits until something holds, a minute at most.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for !holds() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			t.Fatal("it did not happen within a minute")
		}
	}
}
