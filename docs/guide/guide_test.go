// Package guide_test holds the Go code that the guide quotes, so that the
// compiler and the tests see it. internal/archtest compares the two.
package guide_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestLimits_AreConfigured(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Address:         ":8888",
		MaxMessageBytes: 64 << 20,        // instead of 16 MiB (MessageBytes)
		IdleTimeout:     2 * time.Minute, // keep it above the clients'
		FrameTimeout:    -1,              // off
	})
	if err != nil || server == nil {
		t.Fatal(err)
	}
}

// report tells operators what a failed call means for them.
func report(err error) (again bool) {
	var failure *fulmar.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &failure):
		slog.Warn("call failed",
			"method", failure.Method(), // "Orders.place"
			"code", failure.Code(), // what kind of failure
			"origin", failure.Origin(), // who says so
			"executed", failure.Executed(), // did the handler run?
			"address", failure.Address(),
			"elapsed", failure.Elapsed())
		return failure.Executed() == fulmar.ExecutedNo // safe to try again
	}
	return false // an exception that the IDL declares
}

func TestErrors_SayWhetherTheHandlerRan(t *testing.T) {
	err := error(fulmar.NewError(fulmar.NotFound, "order 7"))
	if report(err) {
		t.Error("an error of a handler counts as not executed")
	}
	if report(nil) || report(errors.New("declared in the IDL")) {
		t.Error("what is no *fulmar.Error is to be repeated")
	}
}

// TestErrors_ReadAsTheGuideSays makes the call whose error the guide and the
// documentation of Error quote: to a peer that never answers.
func TestErrors_ReadAsTheGuideSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := fulmar.NewClient(fulmar.ClientConfig{
			Target: "127.0.0.1:8888",
			Dial: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				return ours, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		place := &fulmar.MethodDesc{Service: "Orders", Name: "place", Codec: thrift.Binary}
		err = client.Call(t.Context(), place, &testservice.EchoAddArgs{}, &testservice.EchoAddResult{}, fulmar.Timeout(200*time.Millisecond))
		if err == nil {
			t.Fatal("the call succeeded")
		}
		for _, name := range []string{"errors.md", "../../error.go"} {
			content, readErr := os.ReadFile(name)
			if readErr != nil {
				t.Fatal(readErr)
			}
			// A comment may break the line.
			text := strings.Join(strings.Fields(strings.ReplaceAll(string(content), "\n//", " ")), " ")
			if !strings.Contains(text, err.Error()) {
				t.Errorf("%s does not quote the error as it is: %s", name, err)
			}
		}
	})
}

// find is a handler's way to fail without an exception in the IDL.
func find(id int64) error {
	if id <= 0 {
		return fulmar.Errorf(fulmar.InvalidArgument, "order id %d is not positive", id)
	}
	return fulmar.NewError(fulmar.NotFound, "no such order")
}

func TestErrors_HaveCodes(t *testing.T) {
	for id, want := range map[int64]fulmar.Code{-1: fulmar.InvalidArgument, 7: fulmar.NotFound} {
		if got := fulmar.CodeOf(find(id)); got != want {
			t.Errorf("find(%d) has code %v, want %v", id, got, want)
		}
	}
}

// audit is an interceptor: it sees every call, on either side.
func audit(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
	err := next(ctx, call)
	slog.Info("called", "method", call.Method(), "peer", call.Peer(), "code", fulmar.CodeOf(err))
	return err
}

func TestInterceptors_AreConfigured(t *testing.T) {
	config := fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{audit}}
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfig_ReportsAllProblems(t *testing.T) {
	config := fulmar.ClientConfig{Target: "no port", Protocol: 99}
	err := config.Validate()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 2 {
		t.Errorf("Validate: %v, want two problems", fmt.Sprint(err))
	}
}
