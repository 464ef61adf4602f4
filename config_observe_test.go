package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/observe"
)

// serverHooks and clientHooks are the fields that say who sees calls.
func serverHooks() map[string]field[fulmar.ServerConfig] {
	calls := new(atomic.Int64)
	return map[string]field[fulmar.ServerConfig]{
		"DecodedInterceptors": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				conn := connect(t, serve(t, config, adder()).address)
				// A request that cannot be decoded is refused before they run.
				write(t, conn, frame(message(thriftwire.Call, "add", 1, []byte{0xff})))
				_, broken := readFrame(t, conn)
				write(t, conn, frame(message(thriftwire.Call, "add", 1, body(t, &testservice.EchoAddArgs{}))))
				_, sound := readFrame(t, conn)
				return fmt.Sprint(strings.Contains(string(broken), "not you"), strings.Contains(string(sound), "not you"))
			},
			settings: []setting{{nil, "false false"}, {[]fulmar.UnaryInterceptor{refusing}, "false true"}},
		},
		"Observers": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				calls.Store(0)
				server := serve(t, config, adder())
				_, err := dial(t, fulmar.ClientConfig{Target: server.address}).Add(context.Background(), 1, 2)
				return fmt.Sprint(errors.Join(err, server.stop()), calls.Load())
			},
			settings: []setting{{nil, "<nil> 0"}, {counting(calls), "<nil> 1"}},
		},
	}
}

func clientHooks() map[string]field[fulmar.ClientConfig] {
	calls := new(atomic.Int64)
	return map[string]field[fulmar.ClientConfig]{
		"Observers": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				calls.Store(0)
				config.Target = serve(t, fulmar.ServerConfig{}, adder()).address
				_, err := dial(t, config).Add(context.Background(), 1, 2)
				return fmt.Sprint(err, calls.Load())
			},
			settings: []setting{{nil, "<nil> 0"}, {counting(calls), "<nil> 1"}},
		},
		"Logger": {
			observe:  observeClientLogger,
			settings: []setting{{nil, "the default logger"}, {slog.New(slog.NewTextHandler(io.Discard, nil)), "another"}},
		},
	}
}

// counting are observers that count calls.
func counting(calls *atomic.Int64) []observe.Observer {
	return []observe.Observer{{
		Phases: observe.SetOf(observe.PhaseDone),
		Event:  func(*observe.Call, any, observe.Event) { calls.Add(1) },
	}}
}

// observeClientLogger makes an observer panic, and looks whether the default logger
// hears of it.
func observeClientLogger(t *testing.T, config fulmar.ClientConfig) any {
	heard := &logRecorder{}
	before, output, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(heard, nil)))
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(output)
		log.SetFlags(flags)
	}()
	config.Target = "127.0.0.1:1"
	config.Observers = []observe.Observer{{Event: func(*observe.Call, any, observe.Event) { panic("an observer") }}}
	_ = dial(t, config).Nothing(context.Background(), fulmar.Timeout(0))
	if strings.Contains(heard.String(), "panic in an observer") {
		return "the default logger"
	}
	return "another"
}
