package cluster_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// nameServer answers questions of real connections. Those of datagrams are cut if
// truncates, so that package net asks again over TCP.
type nameServer struct {
	answers   map[dnsmessage.Type][]dnsmessage.Resource
	truncates bool
	address   string
}

// listenOnBoth returns listeners on one port of both networks. A port that is free on one
// may be somebody else's on the other.
func listenOnBoth(t *testing.T) (net.Listener, net.PacketConn) {
	t.Helper()
	var last error
	for range 20 {
		stream, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		datagrams, err := net.ListenPacket("udp", stream.Addr().String())
		if err == nil {
			return stream, datagrams
		}
		last = errors.Join(err, stream.Close())
	}
	t.Fatalf("no port that is free on TCP and UDP: %v", last)
	return nil, nil
}

// serveNames starts it on one port for both networks.
func serveNames(t *testing.T, s *nameServer) *nameServer {
	t.Helper()
	stream, datagrams := listenOnBoth(t)
	s.address = stream.Addr().String()
	t.Cleanup(func() { _, _ = stream.Close(), datagrams.Close() })
	go func() {
		question := make([]byte, 4096)
		for {
			n, from, err := datagrams.ReadFrom(question)
			if err != nil {
				return
			}
			_, _ = datagrams.WriteTo(s.answer(question[:n], s.truncates), from)
		}
	}()
	go func() {
		for {
			conn, err := stream.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *nameServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		length := make([]byte, 2)
		if _, err := io.ReadFull(conn, length); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(length))
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		if _, err := conn.Write(framed(s.answer(question, false))); err != nil {
			return
		}
	}
}

// framed puts the length in front of a message.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
}

func (s *nameServer) answer(question []byte, truncates bool) []byte {
	var asked dnsmessage.Message
	if asked.Unpack(question) != nil || len(asked.Questions) != 1 {
		return nil
	}
	told := dnsmessage.Message{Header: dnsmessage.Header{ID: asked.ID, Response: true, Truncated: truncates}, Questions: asked.Questions}
	if !truncates {
		told.Answers = slices.Clone(s.answers[asked.Questions[0].Type]) // Pack writes lengths into them.
	}
	packed, err := told.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// lasting returns a record of a name that holds for some seconds.
func lasting(name string, seconds uint32, body dnsmessage.ResourceBody) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET, TTL: seconds}, Body: body}
}

// TestDNS_UsesAnswersAsLongAsTheyHold: the shortest time counts, within bounds, over UDP
// and TCP, unless a time is set.
func TestDNS_UsesAnswersAsLongAsTheyHold(t *testing.T) {
	const host, service = "orders.example.", "_orders._tcp.example."
	a := func(seconds uint32, last byte) dnsmessage.Resource {
		return lasting(host, seconds, &dnsmessage.AResource{A: [4]byte{10, 0, 0, last}})
	}
	srv := func(seconds uint32, port uint16) dnsmessage.Resource {
		return lasting(service, seconds, &dnsmessage.SRVResource{Port: port, Target: dnsmessage.MustNewName("a.example.")})
	}
	six := lasting(host, 17, &dnsmessage.AAAAResource{AAAA: [16]byte{0xfd, 15: 1}})
	text := lasting(host, 1, &dnsmessage.TXTResource{TXT: []string{"a"}})
	type answers = map[dnsmessage.Type][]dnsmessage.Resource
	for _, test := range []struct {
		name    string
		config  cluster.DNSConfig
		answers answers
		want    time.Duration
		list    []string
	}{
		{"the shortest", cluster.DNSConfig{Name: host + ":80"}, answers{dnsmessage.TypeA: {a(60, 1), a(20, 2)}, dnsmessage.TypeAAAA: {six}}, 17 * time.Second, []string{"10.0.0.1:80", "10.0.0.2:80", "[fd00::1]:80"}},
		{"records that are no addresses do not count", cluster.DNSConfig{Name: host + ":80"}, answers{dnsmessage.TypeA: {text, a(60, 1)}}, time.Minute, []string{"10.0.0.1:80"}},
		{"SRV", cluster.DNSConfig{Name: service}, answers{dnsmessage.TypeSRV: {srv(40, 1), srv(50, 2)}}, 40 * time.Second, []string{"a.example:1", "a.example:2"}},
		{"no time at all", cluster.DNSConfig{Name: service}, answers{dnsmessage.TypeSRV: {srv(0, 1)}}, limits.DNSRefreshMin, []string{"a.example:1"}},
		{"a day", cluster.DNSConfig{Name: service}, answers{dnsmessage.TypeSRV: {srv(86400, 1)}}, limits.DNSRefreshMax, []string{"a.example:1"}},
		{"set", cluster.DNSConfig{Name: service, Refresh: time.Hour}, answers{dnsmessage.TypeSRV: {srv(40, 1)}}, time.Hour, []string{"a.example:1"}},
	} {
		for _, truncates := range []bool{false, true} {
			server := serveNames(t, &nameServer{answers: test.answers, truncates: truncates})
			d, err := cluster.NewDNS(test.config)
			if err != nil {
				t.Fatal(err)
			}
			d.DialServers(func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, server.address)
			})
			list, pause, err := d.LookUp(t.Context())
			var addresses []string
			for _, instance := range list {
				addresses = append(addresses, instance.Address)
			}
			if err != nil || pause != test.want || !slices.Equal(addresses, test.list) {
				t.Errorf("%s (truncated %v): %v, %v, %q; want %v, %q", test.name, truncates, err, pause, addresses, test.want, test.list)
			}
		}
	}
}

// FuzzAnswers: any bytes as answers of DNS on a connection: they are passed on as they came,
// and hold as long however they are cut.
func FuzzAnswers(f *testing.F) {
	s := nameServer{answers: map[dnsmessage.Type][]dnsmessage.Resource{dnsmessage.TypeA: {
		lasting("a.example.", 9, &dnsmessage.AResource{}), lasting("a.example.", 5, &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName("b.")}),
	}}}
	question := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("a.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	packed, err := question.Pack()
	if err != nil {
		f.Fatal(err)
	}
	answer := framed(s.answer(packed, false))
	f.Add(answer, uint8(3))
	f.Add(append(slices.Clone(answer), answer...), uint8(200))
	f.Add([]byte{0, 0, 0, 1, 0, 255, 255, 1}, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, piece uint8) {
		whole, known, read := cluster.TimesOfStream(came{Reader: bytes.NewReader(data)}, len(data)+1)
		cut, knownCut, readCut := cluster.TimesOfStream(came{Reader: bytes.NewReader(data)}, int(piece)+1)
		if whole != cut || known != knownCut || !bytes.Equal(read, data) || !bytes.Equal(readCut, data) {
			t.Errorf("%v %v in one piece, %v %v cut by %d", whole, known, cut, knownCut, int(piece)+1)
		}
		if whole < 0 {
			t.Errorf("holds for %v", whole)
		}
	})
}

// came is a connection of which only reads matter.
type came struct {
	net.Conn
	*bytes.Reader
}

func (c came) Read(b []byte) (int, error) { return c.Reader.Read(b) }
