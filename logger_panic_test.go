package fulmar_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// panickingLog is a slog.Handler that panics over each line.
type panickingLog struct{}

func (panickingLog) Enabled(context.Context, slog.Level) bool  { return true }
func (panickingLog) Handle(context.Context, slog.Record) error { panic("no logger") }
func (l panickingLog) WithAttrs([]slog.Attr) slog.Handler      { return l }
func (l panickingLog) WithGroup(string) slog.Handler           { return l }

// TestLogger_PanicsHarmNobody: what would be logged of a panic of a handler, a refused
// call and wrong bytes is lost, and nothing else.
func TestLogger_PanicsHarmNobody(t *testing.T) {
	stub := adder()
	stub.OnNothing = func(context.Context) error { panic("no handler") }
	server := serve(t, fulmar.ServerConfig{Logger: slog.New(panickingLog{})}, stub)
	clients := []fulmar.ClientConfig{{Local: server.server}}
	for _, protocol := range allProtocols {
		clients = append(clients, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
	}
	for _, config := range clients {
		config.Logger = slog.New(panickingLog{})
		client := dialAny(t, config)
		api := testservice.NewEchoClient(client)
		if err := api.Nothing(t.Context()); fulmar.CodeOf(err) != fulmar.Internal {
			t.Errorf("%v: a handler that panics: %v", config.Protocol, err)
		}
		request := fulmar.Raw{0}
		if err := client.Call(t.Context(), rawMethod(t, "Echo", "missing"), &request, new(fulmar.Raw)); fulmar.CodeOf(err) != fulmar.Unimplemented {
			t.Errorf("%v: an unknown method: %v", config.Protocol, err)
		}
		if sum, err := api.Add(t.Context(), 40, 2); sum != 42 || err != nil {
			t.Errorf("%v: Add = %d, %v", config.Protocol, sum, err)
		}
	}
	conn := connect(t, server.address)
	write(t, conn, []byte("GET / HTTP/1.1\r\n\r\n"))
	if n, err := conn.Read(make([]byte, 100)); n == 0 {
		t.Errorf("wrong bytes are not answered: %v", err)
	}
}
