package guide_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

func TestTargets_WarmUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := client.WarmUp(ctx); err != nil {
		slog.Warn("some servers cannot be reached yet", "error", err)
	}
	if n := client.Stats().Connections; n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func TestTargets_AList(t *testing.T) {
	client, err := fulmar.NewClient(fulmar.ClientConfig{
		Target: "static:///10.0.0.1:8888,10.0.0.2:8888,10.0.0.3:8888",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// TestTargets_QuotesErrors: the texts that the guide quotes are those that a
// user gets, but for the name of the method and the time.
func TestTargets_QuotesErrors(t *testing.T) {
	guide, err := os.ReadFile("targets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, err = fulmar.NewClient(fulmar.ClientConfig{Target: "static:///10.0.0.1:8888,10.0.0.2"})
	if err == nil || !strings.Contains(string(guide), "`"+err.Error()+"`") {
		t.Errorf("the guide does not quote %q", err)
	}
	client, err := fulmar.NewClient(fulmar.ClientConfig{
		Target: "static:///10.0.0.1:8888,10.0.0.2:8888",
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New(syscall.ECONNREFUSED.Error())}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = testservice.NewEchoClient(client).Nothing(context.Background())
	text := regexp.MustCompile(`after [0-9.]+.s`).ReplaceAllString(err.Error(), "after 500µs")
	text = strings.Replace(text, "Echo.nothing", "Orders.place", 1)
	if strings.Contains(text, "before that 10.0.0.2") { // Which is tried first is chance.
		text = strings.NewReplacer("10.0.0.2", "10.0.0.1", "10.0.0.1", "10.0.0.2").Replace(text)
	}
	if !strings.Contains(string(guide), "`"+text+"`") {
		t.Errorf("the guide does not quote %q", text)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}
