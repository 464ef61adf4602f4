package main

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// abuse is one way to be a bad peer.
type abuse struct {
	name string
	// settings are those of a peer in HTTP/2, first comes once behind them, or as the first
	// bytes of another one (raw), and again up to times times, as fast as the server takes it.
	settings []byte
	raw      bool
	secured  bool
	// little: it goes to the server that has room for little.
	little bool
	first  func(*abuser) []byte
	again  func(*abuser) []byte
	times  int
	// cut: the server must end the connection within so long. Otherwise the connection must
	// serve a call when the rest is through: when settled says so, if it is set.
	cut     time.Duration
	settled func(*abuser) bool
	// behind is what comes instead of a call in gRPC where the peer has streams over TTHeader.
	behind func() []byte
}

// abuseTimeout is FrameTimeout, FirstByteTimeout and WriteStallTimeout of the server. Its
// connections are looked at every half second.
const abuseTimeout, abuseSlack = time.Second, time.Second

// abuseBudget is MaxBufferedBytes of the server that has little: less than messages of all
// connections together.
const abuseBudget = 4 << 20

// abuses are all of them.
func abuses(call []byte) []abuse {
	all := append(streamAbuses(call), frameAbuses()...)
	all = append(all, headerAbuses()...)
	all = append(all, callAbuses(call)...)
	all = append(all, patientAbuses()...)
	all = append(all, messageAbuses()...)
	return append(all, portAbuses()...)
}

// flood is a connection that is ended within a second.
func flood(name string, first, again func(*abuser) []byte) abuse {
	return abuse{name: name, first: first, again: again, times: 50_000, cut: time.Second}
}

// streamAbuses begin streams, and have them reset.
func streamAbuses(call []byte) []abuse {
	// provoke is a flood of requests, each with something behind it.
	provoke := func(name string, flags byte, behind func(id uint32) []byte, fields ...[]byte) abuse {
		return flood(name, nil, func(a *abuser) []byte {
			id := a.id
			return append(a.stream(flags, fields...), behind(id)...)
		})
	}
	return []abuse{
		flood("rapid reset", nil, func(a *abuser) []byte {
			id := a.id
			return append(a.call(call), h2(typeReset, 0, id, u32(8)...)...)
		}),
		provoke("WINDOW_UPDATE by 0", 0, func(id uint32) []byte { return h2(typeWindow, 0, id, u32(0)...) }),
		provoke("window overflow", 0, func(id uint32) []byte { return h2(typeWindow, 0, id, u32(1<<31-1)...) }),
		provoke("HEADERS on half closed", flagEnd, func(id uint32) []byte { return h2(typeHeaders, flagEndHeaders|flagEnd, id, requestBlock()...) }),
		provoke("DATA on half closed", flagEnd, func(id uint32) []byte { return h2(typeData, 0, id, 'x') }),
		provoke("PRIORITY of 4 bytes", 0, func(id uint32) []byte { return h2(typePriority, 0, id, u32(1)...) }),
		provoke("DATA beyond content-length", 0, func(id uint32) []byte { return h2(typeData, 0, id, 0, 0, 0, 0) }, literal("content-length", "3")),
		provoke("stream that depends on itself", 0, func(id uint32) []byte { return h2(typePriority, 0, id, append(u32(id), 1)...) }),
		flood("malformed requests", nil, func(a *abuser) []byte { return a.stream(0, literal("Upper", "case")) }),
	}
}

// frameAbuses are frames that do nothing, or next to nothing.
func frameAbuses() []abuse {
	open := func(a *abuser) []byte { return append(a.stream(0), h2(typeData, 0, 1, 0, 0, 0xf, 0, 0)...) }
	same := func(b []byte) func(*abuser) []byte { return func(*abuser) []byte { return b } }
	return []abuse{
		flood("PING flood", nil, same(h2(typePing, 0, 0, make([]byte, 8)...))),
		flood("SETTINGS flood", nil, same(h2(typeSettings, 0, 0))),
		flood("SETTINGS of 2,000 entries", nil, same(h2(typeSettings, 0, 0, make([]byte, 12_000)...))),
		flood("PRIORITY flood", nil, same(h2(typePriority, 0, 7, 0, 0, 0, 1, 0))),
		flood("unknown frames", nil, same(h2(0xf0, 0, 7))),
		flood("WINDOW_UPDATE flood", nil, same(h2(typeWindow, 0, 0, u32(1)...))),
		flood("empty DATA flood", open, same(h2(typeData, 0, 1))),
		flood("DATA of padding", open, same(h2(typeData, 8, 1, append([]byte{100}, make([]byte, 100)...)...))),
		flood("DATA byte by byte", open, same(h2(typeData, 0, 1, 'x'))),
		flood("DATA behind the answer", open, same(h2(typeData, 0, 1, make([]byte, 16_000)...))),
	}
}

// headerAbuses are header blocks that are more than they seem.
func headerAbuses() []abuse {
	begin := func(*abuser) []byte { return h2(typeHeaders, 0, 1, 0x83) }
	return []abuse{
		flood("CONTINUATION flood", begin, func(*abuser) []byte { return h2(typeContinuation, 0, 1) }),
		flood("long CONTINUATION flood", begin, func(*abuser) []byte { return h2(typeContinuation, 0, 1, make([]byte, 16_000)...) }),
		flood("HPACK bomb", func(a *abuser) []byte {
			// A field of 4,000 bytes for the table, which each byte of those to come means again.
			field := append([]byte{0x40, 1, 'a', 0x7f, 0xa1, 0x1e}, make([]byte, 4000)...)
			a.id += 2
			return h2(typeHeaders, flagEndHeaders|flagEnd, a.id-2, append(requestBlock(), field...)...)
		}, func(a *abuser) []byte {
			a.id += 2
			return h2(typeHeaders, flagEndHeaders|flagEnd, a.id-2, append(requestBlock(), bytes.Repeat([]byte{0x80 | 62}, 16_000)...)...)
		}),
		flood("header lists of 32 KiB", nil, func(a *abuser) []byte {
			field := literal("key", string(bytes.Repeat([]byte{'v'}, 120)))
			a.id += 2
			block := append(requestBlock(), bytes.Repeat(field, 15_000/len(field))...)
			return append(h2(typeHeaders, flagEnd, a.id-2, block...), h2(typeContinuation, flagEndHeaders, a.id-2, bytes.Repeat(field, 100)...)...)
		}),
		flood("empty names", nil, func(a *abuser) []byte { return a.stream(0, []byte{0, 0, 0}) }),
		flood("empty names in lists of 18 KiB", nil, func(a *abuser) []byte {
			return a.stream(0, []byte{0, 0, 0}, bytes.Repeat(literal("key", string(bytes.Repeat([]byte{'v'}, 120))), 120))
		}),
	}
}

// callAbuses are calls of gRPC that are refused, each for itself.
func callAbuses(call []byte) []abuse {
	const times = 200
	answered := func(a *abuser) bool { return a.answers.Load() == times }
	refused := func(name string, message []byte, fields ...[]byte) abuse {
		return abuse{name: name, times: times, settled: answered, again: func(a *abuser) []byte { return a.call(message, fields...) }}
	}
	return []abuse{
		refused("grpc-timeout that is none", call, literal("grpc-timeout", "99999999999999S")),
		refused("-bin that is no base64", call, literal("key-bin", "%%%%")),
		refused("unknown encoding", call, literal("grpc-encoding", "bomb")),
		refused("message of 4 GiB", []byte{0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3}),
		refused("unknown flags", []byte{0xfe, 0, 0, 0, 0}),
		refused("no gzip", prefixed(1, call), literal("grpc-encoding", "gzip")),
		refused("bytes that are no Thrift", prefixed(0, []byte{99, 1, 2, 3})),
		refused("gzip bombs that say so", prefixed(1, gzipBomb(true)), literal("grpc-encoding", "gzip")),
		{name: "gzip bombs", times: 50_000, cut: 2 * time.Second, again: func() func(a *abuser) []byte {
			bomb := prefixed(1, gzipBomb(false))
			return func(a *abuser) []byte { return a.call(bomb, literal("grpc-encoding", "gzip")) }
		}()},
	}
}

// gzipBomb is 20 MiB in 20 KiB, which may say so.
func gzipBomb(honest bool) []byte {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write(make([]byte, 20<<20))
	_ = writer.Close()
	b := out.Bytes()
	if !honest {
		copy(b[len(b)-4:], u32(1<<24)) // 1 byte: the lowest comes first.
	}
	return b
}

// patientAbuses begin something and wait.
func patientAbuses() []abuse {
	// Ended, or reset, when the time that the server gives is over.
	const late = abuseTimeout + abuseSlack
	begin := func(b ...byte) func(*abuser) []byte { return func(*abuser) []byte { return b } }
	return []abuse{
		{name: "preface without settings", raw: true, first: begin(preface()[:24]...), cut: late},
		{name: "half a frame", first: begin(0, 0, 9, 1), cut: late},
		{name: "half a header block", first: func(*abuser) []byte { return h2(typeHeaders, 0, 1, 0x83) }, cut: late},
		{name: "requests that do not end", times: 250, again: func(a *abuser) []byte { return a.stream(0) },
			settled: func(a *abuser) bool { return a.resets.Load() == 250 }},
		{name: "answers without a window", times: 250, settings: []byte{0, 4, 0, 0, 0, 0}, again: func(a *abuser) []byte { return a.call(longCall()) },
			settled: func(a *abuser) bool { return a.resets.Load() == 250 }},
	}
}

// messageAbuses begin messages of streams, and let the rest of them wait.
func messageAbuses() []abuse {
	const (
		streams, part = 20, 60_000 // less than a window
		length, rest  = 1 << 20, 256 << 10
	)
	pieces := func(id uint32, b []byte) (all []byte) {
		for ; len(b) > 0; b = b[min(len(b), 15_000):] {
			all = append(all, h2(typeData, 0, id, b[:min(len(b), 15_000)]...)...)
		}
		return all
	}
	long := streamFrame('3', 1, make([]byte, length))
	return []abuse{
		{name: "parts of messages of streams", times: streams, again: func(a *abuser) []byte {
			id := a.id
			a.id += 2
			headers := append([]byte{0x83, 0x86}, literal(":path", "/Any/thing")...)
			headers = append(headers, literal("content-type", "application/grpc+thrift")...)
			return append(h2(typeHeaders, flagEndHeaders, id, headers...), pieces(id, prefixed(0, make([]byte, part+1))[:part])...)
		}, settled: func(a *abuser) bool { return a.answers.Load() == streams }},
		{name: "part of a message of a stream over TTHeader", raw: true, little: true, first: func(*abuser) []byte {
			return append(streamFrame('2', 1, nil), streamFrame('3', 1, make([]byte, part))[:part]...)
		}, cut: abuseTimeout + abuseSlack + part*time.Second/limits.FrameBytesPerSecond},
		{name: "messages of streams over TTHeader beyond the budget", raw: true, little: true, first: func(*abuser) []byte {
			return append(streamFrame('2', 1, nil), long[:len(long)-rest]...)
		}, settled: func(a *abuser) bool { return time.Since(a.start) > 2*time.Second }, behind: func() []byte {
			all := append(bytes.Clone(long[len(long)-rest:]), streamFrame('4', 1, nil)...)
			return append(append(all, streamFrame('2', lastStream, nil)...), streamFrame('4', lastStream, nil)...)
		}},
	}
}

// lastStream is the stream over TTHeader that must be served.
const lastStream = 2

// streamFrame is a frame of a stream over TTHeader, of a method "thing": '2' is its HEADER, '3'
// a message, '4' its TRAILER.
func streamFrame(kind byte, id uint32, payload []byte) []byte {
	info := []byte{0x10, 0, 0x10, 0, 2, 0, 27, 0, 1, kind, 0, 9, 0, 5, 't', 'h', 'i', 'n', 'g', 0}
	b := append(u32(uint32(10+len(info)+len(payload))), 0x10, 0, 0, 2)
	b = append(b, u32(id)...)
	b = append(b, 0, byte(len(info)/4))
	return append(append(b, info...), payload...)
}

// portAbuses are bytes that no protocol begins with, or another one than the port's.
func portAbuses() []abuse {
	garbage := func(*abuser) []byte {
		b := make([]byte, 4<<10)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		b[0] |= 0x80 // Not the length of a message that is still to come.
		b[1] = 0xff
		return b
	}
	hello := func(*abuser) []byte {
		b, _ := clientHello()
		return b
	}
	plain := func(a *abuser) []byte { return append(preface(), a.stream(flagEnd)...) }
	return []abuse{
		{name: "garbage", raw: true, first: garbage, again: garbage, times: 100, cut: time.Second},
		{name: "garbage to a port of TLS", raw: true, secured: true, first: garbage, again: garbage, times: 100, cut: time.Second},
		{name: "HTTP/1.1", raw: true, first: func(*abuser) []byte { return []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }, cut: time.Second},
		{name: "TLS to a port of plaintext", raw: true, first: hello, cut: time.Second},
		{name: "plaintext to a port of TLS", raw: true, secured: true, first: plain, cut: time.Second},
		{name: "plaintext Thrift to a port of TLS", raw: true, secured: true, first: func(*abuser) []byte { return framed(strictMessage("call", []byte{0})) }, cut: time.Second},
	}
}
