package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// policyText writes a policy file, in place of one that there may be.
func policyText(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file+".next", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".next", file); err != nil {
		t.Fatal(err)
	}
}

// inLines expects so many lines of a log to have a text.
func inLines(t *testing.T, log *logRecorder, text string, want int) {
	t.Helper()
	if n := strings.Count(log.String(), text); n != want {
		t.Errorf("%d lines with %q, want %d: %.2000s", n, text, want, log.String())
	}
}

// TestPolicyFile_GoneIsSaidOnce: what stays as it is needs no line each second.
func TestPolicyFile_GoneIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, log := filepath.Join(t.TempDir(), "policy.json"), &logRecorder{}
		policyText(t, file, `{"client": {"timeout": "1s"}}`)
		client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "10.0.0.1:1", PolicyFile: file, Logger: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		for away := range 2 {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			inLines(t, log, "policy file cannot be read; the last one stays", away+1)
			if n := client.Stats().PoliciesRefused; n != uint64(away+1) {
				t.Errorf("%d refused, want %d", n, away+1)
			}
			policyText(t, file, `{"client": {"timeout": "1s"}}`)
			time.Sleep(2 * limits.PolicyFileInterval)
			inLines(t, log, "policy file can be read again", away+1)
		}
		if document, version, _ := client.Policy(); version != 1 || document.Timeout != time.Second {
			t.Errorf("version %d: %+v", version, document)
		}
		policyText(t, file, `{"client": {"timeout": "2s"}}`)
		time.Sleep(2 * limits.PolicyFileInterval)
		if document, version, _ := client.Policy(); version != 2 || document.Timeout != 2*time.Second {
			t.Errorf("version %d: %+v", version, document)
		}
	})
}

// TestPolicyFile_ChangesBeforeServe: a server reads the file when it is made, and may serve
// long afterwards.
func TestPolicyFile_ChangesBeforeServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "policy.json")
		policyText(t, file, `{"server": {"limit": {"per_second": 1}}}`)
		server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true, PolicyFile: file, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		policyText(t, file, `{"server": {"limit": {"per_second": 2}}}`)
		served := make(chan error)
		ctx, stop := context.WithCancel(t.Context())
		go func() { served <- server.Serve(ctx) }()
		time.Sleep(2 * limits.PolicyFileInterval)
		if document, version, _ := server.Policy(); version != 2 || document.Limit.PerSecond != 2 {
			t.Errorf("version %d: %+v", version, document)
		}
		policyText(t, file, `{"server": {"limit": {"per_second": "x"}}}`)
		time.Sleep(5 * limits.PolicyFileInterval)
		if n := server.Stats().PoliciesRefused; n != 1 {
			t.Errorf("%d refused", n)
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func TestPolicyFile_IsARegularFile(t *testing.T) {
	_, err := fulmar.NewClient(fulmar.ClientConfig{Target: "10.0.0.1:1", PolicyFile: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "it is no regular file (mode d") {
		t.Errorf("a folder: %v", err)
	}
}

// TestPolicySource_TroubleIsSaidOnce: what a source fails with, or reports, is a line and
// counts when it is news.
func TestPolicySource_TroubleIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, next := &logRecorder{}, make(chan string)
		client, err := fulmar.NewClient(fulmar.ClientConfig{
			Target: "10.0.0.1:1", Logger: slog.New(slog.NewTextHandler(log, nil)),
			PolicySource: func(ctx context.Context, deliver func([]byte, string)) error {
				for {
					select {
					case text := <-next:
						switch {
						case strings.HasPrefix(text, "{"):
							deliver([]byte(text), "v")
						case strings.HasPrefix(text, "fail"):
							return errors.New(text)
						default:
							cluster.Report(ctx, errors.New(text))
						}
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		say := func(times int, text string) {
			for range times {
				next <- text
			}
			synctest.Wait()
		}
		say(20, "fail: connection refused") // at most 10 s apart
		inLines(t, log, "connection refused", 1)
		say(20, "not there")
		inLines(t, log, "not there", 1)
		say(1, `{}`)
		say(20, "not there")
		inLines(t, log, "not there", 2)
		time.Sleep(time.Hour) // it must have worked meanwhile
		say(20, "not there")
		inLines(t, log, "not there", 3)
		if n := client.Stats().PoliciesRefused; n != 4 {
			t.Errorf("%d refused, want one for each line", n)
		}
	})
}

// TestPolicySource_PausesAreShortBehindADelivery: one that fails and fails is called after
// pauses that grow, and as soon as it has delivered something after short ones again.
func TestPolicySource_PausesAreShortBehindADelivery(t *testing.T) {
	const least = limits.ResolvePauseMin
	synctest.Test(t, func(t *testing.T) {
		calls := []struct {
			delivers bool
			// pause is that behind the call.
			pause time.Duration
		}{
			{true, least}, {true, least}, {true, least}, {true, least}, {true, least},
			{false, 2 * least}, {false, 4 * least}, {false, 8 * least},
			{true, least}, {true, least}, {false, 2 * least},
		}
		var called []time.Time
		client, err := fulmar.NewClient(fulmar.ClientConfig{
			Target: "10.0.0.1:1", Logger: slog.New(slog.DiscardHandler),
			PolicySource: func(ctx context.Context, deliver func([]byte, string)) error {
				n := len(called)
				if called = append(called, time.Now()); n == len(calls) {
					<-ctx.Done()
					return ctx.Err()
				}
				if calls[n].delivers {
					deliver([]byte(`{}`), fmt.Sprint(n))
				}
				return errors.New("connection lost")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if len(called) != len(calls)+1 {
			t.Fatalf("called %d times", len(called))
		}
		for i, call := range calls {
			if pause := called[i+1].Sub(called[i]); pause < call.pause/2 || pause > call.pause {
				t.Errorf("pause of %v behind call %d, want %v or up to half less", pause, i, call.pause)
			}
		}
	})
}

// TestServerPolicy_UnknownNames: limits for what a server does not have are one warning of
// each document, when it is known what the server has.
func TestServerPolicy_UnknownNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecorder{}
		names := func(names ...string) policy.Server {
			document := policy.Server{Methods: map[string]policy.Limit{}}
			for _, name := range names {
				document.Methods[name] = policy.Limit{Running: 10}
			}
			return document
		}
		server, err := fulmar.NewServer(fulmar.ServerConfig{
			LocalOnly: true, Logger: slog.New(slog.NewTextHandler(log, nil)), Policy: names("Echo.adn", "Echo", "Echo.add", "Orders"),
		})
		if err != nil {
			t.Fatal(err)
		}
		testservice.RegisterEchoServer(server, adder())
		const line = "policy has limits for names that no registered service or method has"
		inLines(t, log, line, 0)
		served := make(chan error)
		ctx, stop := context.WithCancel(t.Context())
		go func() { served <- server.Serve(ctx) }()
		synctest.Wait()
		inLines(t, log, line, 1)
		inLines(t, log, `names="[Echo.adn Orders]" unknown=2 version=0 source=configuration`, 1)
		set := func(document policy.Server) {
			t.Helper()
			if err := server.SetPolicy(document); err != nil {
				t.Fatal(err)
			}
		}
		set(names("Echo", "Echo.add", "Echo/nothing"))
		set(policy.Server{})
		inLines(t, log, line, 1)
		var many []string
		for i := range 500 {
			many = append(many, fmt.Sprintf("Echo.m%03d", i))
		}
		set(names(many...))
		inLines(t, log, line, 2)
		inLines(t, log, `names="[Echo.m000 Echo.m001 Echo.m002 Echo.m003 Echo.m004 Echo.m005 Echo.m006 Echo.m007 Echo.m008 Echo.m009]" unknown=500 version=3 source=SetPolicy`, 1)
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// TestServerPolicy_UnknownNamesOfAProxy: what answers unknown calls may get any of them.
func TestServerPolicy_UnknownNamesOfAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecorder{}
		server, err := fulmar.NewServer(fulmar.ServerConfig{
			LocalOnly: true, Logger: slog.New(slog.NewTextHandler(log, nil)), Policy: policy.Server{Methods: map[string]policy.Limit{"Orders": {Running: 10}}},
			UnknownHandler: func(context.Context, fulmar.Raw) (fulmar.Raw, error) { return nil, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error)
		ctx, stop := context.WithCancel(t.Context())
		go func() { served <- server.Serve(ctx) }()
		synctest.Wait()
		inLines(t, log, "policy has limits", 0)
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
