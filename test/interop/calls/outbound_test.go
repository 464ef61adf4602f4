package calls_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/test/interop/cases"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

// A Fulmar client calls servers of the peers.

func TestOutbound_ServersGetWhatTheRulesSay(t *testing.T) {
	file := loadCases(t, "cases.json")
	eachPeer(t, peer.Names(), func(t *testing.T, name string, transport transport) {
		runCases(t, file, name, peer.Serve(t, name, transport.name), transport)
	})
}

// What only a header can carry.
func TestOutbound_CouriersGetWhatTheRulesSay(t *testing.T) {
	file := loadCases(t, "courier.json")
	eachPeer(t, []string{peer.Kitex, peer.KitexPlain}, func(t *testing.T, name string, transport transport) {
		if transport.hasHeader() {
			runCases(t, file, name, peer.Serve(t, name, transport.name), transport)
		}
	})
}

// The same without a peer: what fails here is not a matter of two
// implementations. Fulmar is like a Kitex with its handlers, where it matters.
func TestOutbound_FulmarServerGetsWhatTheRulesSay(t *testing.T) {
	everything, courier := loadCases(t, "cases.json"), loadCases(t, "courier.json")
	for _, transport := range transports() {
		t.Run(transport.name, func(t *testing.T) {
			server := serve(t, expectProtocol(t, transport))
			runCases(t, everything, "fulmar", server.address, transport)
			if transport.hasHeader() {
				runCases(t, courier, peer.Kitex, server.address, transport)
			}
		})
	}
}

func runCases(t *testing.T, file cases.File, name, address string, transport transport) {
	api := connect(t, address, transport)
	runner := newRunner(t, name, api)
	for _, c := range file.Cases {
		if c.TakesPart(name) {
			t.Run(c.Name, func(t *testing.T) {
				if err := runner.Run(c); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if stats := api.client.Stats(); transport.multiplexed && stats.Connections != 1 {
		t.Errorf("%d connections, want all calls on one", stats.Connections)
	}
	for _, c := range file.Raw {
		// Behind a header the payload is the same.
		if c.TakesPart(name) && !transport.hasHeader() {
			t.Run(c.Name, func(t *testing.T) { runRaw(t, c, transport.name, address) })
		}
	}
}

// runRaw sends a message that no client would send and a ping behind it, and
// compares every byte that comes back. It does not shut down its side before:
// Kitex takes that for the end and answers nothing.
func runRaw(t *testing.T, c cases.Raw, transport, address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	kind, seqID := byte(1), int32(1)
	if c.Raw.Type != nil {
		kind = *c.Raw.Type
	}
	if c.Raw.SeqID != nil {
		seqID = *c.Raw.SeqID
	}
	request := append(message(transport, c.Raw.Method, kind, seqID, c.RequestBody()), message(transport, "ping", 1, 4711, "00")...)
	if _, err := conn.Write(request); err != nil {
		t.Fatal(err)
	}
	switch {
	case c.Nothing:
		// What came would be in front of the reply to the ping.
	case c.Body != "":
		expect(t, conn, message(transport, c.Raw.Method, 2, seqID, c.Body))
	default:
		expectException(t, conn, message(transport, c.Raw.Method, 3, seqID, ""), c.Exception)
	}
	expect(t, conn, message(transport, "ping", 2, 4711, "00"))
}

// receive reads count bytes, or fails with those that came.
func receive(t *testing.T, conn net.Conn, count int) []byte {
	t.Helper()
	got := make([]byte, count)
	if n, err := io.ReadFull(conn, got); err != nil {
		t.Fatalf("%v after % x", err, got[:n])
	}
	return got
}

func expect(t *testing.T, conn net.Conn, want []byte) {
	t.Helper()
	if got := receive(t, conn, len(want)); !bytes.Equal(got, want) {
		t.Fatalf("got % x, want % x", got, want)
	}
}

// expectException reads an application exception with some text and the type.
// Its head is that of a message without a body, apart from the length of a frame.
func expectException(t *testing.T, conn net.Conn, head []byte, kind int32) {
	t.Helper()
	head = head[bytes.Index(head, []byte{0x80, 0x01}):]
	got := receive(t, conn, 2)
	if got[0] != 0x80 {
		receive(t, conn, 2) // the length of a frame
		got = receive(t, conn, 2)
	}
	got = append(got, receive(t, conn, len(head)-2)...)
	if !bytes.Equal(got, head) {
		t.Fatalf("got % x, want % x", got, head)
	}
	var exception uint32
	for field := receive(t, conn, 1)[0]; field != 0; field = receive(t, conn, 1)[0] {
		// A string with its length, or the type.
		value := binary.BigEndian.Uint32(receive(t, conn, 6)[2:])
		if field == 11 {
			receive(t, conn, int(value))
			continue
		}
		exception = value
	}
	if int32(exception) != kind {
		t.Fatalf("an exception of type %d, want %d", int32(exception), kind)
	}
}

// message returns the bytes of a message whose body is given in hex.
func message(transport, name string, kind byte, seqID int32, body string) []byte {
	payload := []byte{0x80, 0x01, 0x00, kind}
	payload = binary.BigEndian.AppendUint32(payload, uint32(len(name)))
	payload = append(payload, name...)
	payload = binary.BigEndian.AppendUint32(payload, uint32(seqID))
	content, err := hex.DecodeString(strings.Join(strings.Fields(body), ""))
	if err != nil {
		panic(err)
	}
	payload = append(payload, content...)
	if transport == "framed" {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
	}
	return payload
}
