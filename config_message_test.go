package fulmar_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// serverMessageLimits are the fields that bound a message, observed by requests
// and replies of a client that has no limits itself.
func serverMessageLimits() map[string]field[fulmar.ServerConfig] {
	off := fulmar.ClientConfig{MaxMessageBytes: -1, MaxDepth: -1, DecodeBytesPerWireByte: -1, MaxDecodeBytes: -1}
	return map[string]field[fulmar.ServerConfig]{
		"MaxMessageBytes": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				return bothWays(newProbes(t, config, off), longestMessage)
			},
			settings: messageBytesSettings(),
		},
		"MaxSendBytes": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				config.MaxMessageBytes = 1000
				return bothWays(newProbes(t, config, off), longestMessage)
			},
			settings: sendBytesSettings("requests 1000, replies %d"),
		},
		"MaxDepth": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				return eachWayAndProtocol(t, func(protocol fulmar.Protocol) *probes {
					client := off
					client.Protocol = protocol
					return newProbes(t, config, client)
				})
			},
			settings: depthSettings(),
		},
		"DecodeBytesPerWireByte": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				probes := newProbes(t, config, off)
				return decodeFactor(func(p probe) error { return probes.exchange(p, probe{}) })
			},
			settings: decodeFactorSettings(),
		},
		"MaxDecodeBytes": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				config.DecodeBytesPerWireByte = -1
				probes := newProbes(t, config, off)
				return mostDecoded(func(p probe) error { return probes.exchange(p, probe{}) }, 0)
			},
			settings: decodeBytesSettings(),
		},
	}
}

// clientMessageLimits are the same fields of the client, which calls a server
// that has no limits.
func clientMessageLimits() map[string]field[fulmar.ClientConfig] {
	off := fulmar.ServerConfig{MaxMessageBytes: -1, MaxDepth: -1, DecodeBytesPerWireByte: -1, MaxDecodeBytes: -1}
	return map[string]field[fulmar.ClientConfig]{
		"MaxMessageBytes": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				return bothWays(newProbes(t, off, config), longestMessage)
			},
			settings: messageBytesSettings(),
		},
		"MaxSendBytes": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				config.MaxMessageBytes = 1000
				return bothWays(newProbes(t, off, config), longestMessage)
			},
			settings: sendBytesSettings("requests %d, replies 1000"),
		},
		"MaxDepth": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				return eachWayAndProtocol(t, func(protocol fulmar.Protocol) *probes {
					config.Protocol = protocol
					return newProbes(t, off, config)
				})
			},
			settings: depthSettings(),
		},
		"DecodeBytesPerWireByte": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				probes := newProbes(t, off, config)
				return decodeFactor(func(p probe) error { return probes.exchange(probe{}, p) })
			},
			settings: decodeFactorSettings(),
		},
		"MaxDecodeBytes": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				config.DecodeBytesPerWireByte = -1
				probes := newProbes(t, off, config)
				return mostDecoded(func(p probe) error { return probes.exchange(probe{}, p) }, 0)
			},
			settings: decodeBytesSettings(),
		},
	}
}

// sendBytesSettings are for a side that takes messages of up to 1000 bytes.
func sendBytesSettings(format string) []setting {
	sizes := messageSizes()
	return []setting{
		{1001, fmt.Sprintf(format, 1001)},
		{nil, fmt.Sprintf(format, 1000)},
		{-1, fmt.Sprintf(format, sizes[0])},
	}
}

func messageBytesSettings() []setting {
	longest := messageSizes()[0]
	return []setting{
		{1000, "requests 1000, replies 1000"},
		{nil, fmt.Sprintf("requests %d, replies %[1]d", min(longest, limits.MessageBytes))},
		{-1, fmt.Sprintf("requests %d, replies %[1]d", longest)},
	}
}

// messageSizes are the lengths of messages to try, the longest first.
func messageSizes() []int {
	sizes := []int{limits.MessageBytes + 1, limits.MessageBytes, 1001, 1000}
	if assert.Enabled {
		// For messages of 16 MiB the race detector takes 4 s of processor time.
		sizes = sizes[2:]
	}
	return sizes
}

func depthSettings() []setting {
	return []setting{
		{11, "requests 11, replies 11"},
		{nil, fmt.Sprintf("requests %d, replies %[1]d", limits.Depth)},
		{-1, "requests 10000, replies 10000"},
	}
}

func decodeFactorSettings() []setting {
	return []setting{
		{7, "7 for each byte"},
		{nil, fmt.Sprintf("%d for each byte", limits.DecodeBytesPerWireByte)},
		{-1, "only the cap"},
	}
}

func decodeBytesSettings() []setting {
	return []setting{{100_000, 100_000}, {nil, limits.DecodeBytesMax}, {-1, probedBytesMax}}
}

// probe is a message that is as long, as deep and as costly to decode as a test
// wants it.
type probe struct {
	levels int // of structs, at least 1
	pad    int
	// decode is how many bytes of memory decoding it is charged for.
	decode int
}

func (p *probe) WriteThrift(w *thrift.Writer, b []byte) []byte {
	if !w.BeginStruct() {
		return b
	}
	b = w.Room(b, 11)
	thrift.PutI64(b[len(b):len(b)+11], 1, int64(p.decode))
	b = w.FieldBinary(b[:len(b)+11], 2, make([]byte, p.pad))
	if p.levels > 1 {
		b = thrift.PutField(w.Room(b, 4), thrift.Key(thrift.StructType, 3))
		b = (&probe{levels: p.levels - 1}).WriteThrift(w, b)
	}
	return w.EndStruct(b)
}

func (p *probe) ReadThrift(r *thrift.Reader, at int) int {
	b := r.BeginStruct()
	var field thrift.FieldKey
	for len(b)-at >= 4 {
		field = thrift.KeyAt(b, at)
		if field.IsStop() {
			break
		}
		switch field {
		case thrift.Key(thrift.I64, 1):
			var decode int64
			decode, at = r.I64(at + 3)
			p.decode = int(decode)
		case thrift.Key(thrift.StructType, 3):
			at = (&probe{}).ReadThrift(r, at+3)
		default:
			at = r.Skip(at, field)
		}
	}
	return r.EndStruct(r.ChargeDefaults(at, p.decode), field, "probe")
}

// probes is a server and a client that exchange probes.
type probes struct {
	client *fulmar.Client
	method *fulmar.MethodDesc
	reply  atomic.Pointer[probe]
}

func newProbes(t *testing.T, server fulmar.ServerConfig, client fulmar.ClientConfig) *probes {
	t.Helper()
	p := &probes{}
	p.method = &fulmar.MethodDesc{
		Service: "Probes", Name: "exchange", Codec: thrift.Binary,
		NewRequest: func() any { return &probe{} },
		Invoke:     func(context.Context, any, any) (any, error) { return p.reply.Load(), nil },
	}
	server.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	running := serveAny(t, server, func(registrar fulmar.Registrar) {
		registrar.RegisterService(&fulmar.ServiceDesc{Name: "Probes", Methods: []*fulmar.MethodDesc{p.method}}, p)
	})
	client.Target = running.address
	// Machines may be busy; no test here is about time.
	client.Timeout, client.ConnectTimeout = time.Minute, time.Minute
	p.client = dialAny(t, client)
	return p
}

// exchange sends a request and returns why it was not answered by reply, if it
// was not.
func (p *probes) exchange(request, reply probe) error {
	p.reply.Store(&reply)
	return p.client.Call(context.Background(), p.method, &request, &probe{})
}

// bothWays returns the largest request and the largest reply that pass.
func bothWays(p *probes, largest func(accepts func(probe) bool) int) string {
	requests := largest(func(request probe) bool { return p.exchange(request, probe{}) == nil })
	replies := largest(func(reply probe) bool { return p.exchange(probe{}, reply) == nil })
	return fmt.Sprintf("requests %d, replies %d", requests, replies)
}

// eachWayAndProtocol is bothWays for the nesting of messages, which protocols
// without a length check as well.
func eachWayAndProtocol(t *testing.T, open func(fulmar.Protocol) *probes) string {
	t.Helper()
	seen := bothWays(open(fulmar.Framed), deepestMessage)
	for _, protocol := range allProtocols {
		if other := bothWays(open(protocol), deepestMessage); other != seen {
			t.Errorf("%v: %s; framed: %s", protocol, other, seen)
		}
	}
	return seen
}

// longestMessage and deepestMessage try sizes at the limits that the tests use.
func longestMessage(accepts func(probe) bool) int {
	overhead := thriftwire.AppendedHeaderSize("exchange") + emptyProbeBytes
	return firstAccepted(messageSizes(), func(length int) bool {
		return accepts(probe{pad: length - overhead})
	})
}

func deepestMessage(accepts func(probe) bool) int {
	return firstAccepted([]int{10_001, 10_000, limits.Depth + 1, limits.Depth, 12, 11}, func(levels int) bool {
		return accepts(probe{levels: levels})
	})
}

func firstAccepted(sizes []int, accepts func(int) bool) int {
	for _, size := range sizes {
		if accepts(size) {
			return size
		}
	}
	return 0
}

// emptyProbeBytes is the length of a probe's body without padding: an i64, a
// binary and the end.
const emptyProbeBytes = 3 + 8 + 3 + 4 + 1

// decodeFactor returns how many bytes of memory each byte of a message may cost.
func decodeFactor(exchange func(probe) error) string {
	const length = 1000
	most := mostDecoded(exchange, length-emptyProbeBytes)
	if most == limits.DecodeBytesMax {
		return "only the cap"
	}
	return fmt.Sprintf("%v for each byte", float64(most-limits.DecodeBytesBase)/length)
}

// probedBytesMax is up to how much memory a probe asks for.
const probedBytesMax = 1 << 30

// mostDecoded returns how much memory decoding a message with that padding may
// take.
func mostDecoded(exchange func(probe) error, pad int) int {
	accepted, refused := 0, probedBytesMax+1
	for refused-accepted > 1 {
		if middle := accepted + (refused-accepted)/2; exchange(probe{pad: pad, decode: middle}) == nil {
			accepted = middle
		} else {
			refused = middle
		}
	}
	return accepted
}
