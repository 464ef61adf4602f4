package eventloop_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"net"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// recordWriter writes records of TLS 1.3, for what package crypto/tls never sends.
type recordWriter struct {
	t      *testing.T
	socket net.Conn
	hash   func() hash.Hash
	secret []byte
	sealer cipher.AEAD
	iv     []byte
	number uint64
}

// newRecordWriter takes the keys of a client from what it has logged.
func newRecordWriter(t *testing.T, socket net.Conn, suite uint16, log string) *recordWriter {
	t.Helper()
	w := &recordWriter{t: t, socket: socket, hash: sha256.New}
	if suite == tls.TLS_AES_256_GCM_SHA384 {
		w.hash = sha512.New384
	} else if suite != tls.TLS_AES_128_GCM_SHA256 {
		t.Skipf("the suite here is %s", tls.CipherSuiteName(suite))
	}
	for line := range strings.Lines(log) {
		if rest, ok := strings.CutPrefix(line, "CLIENT_TRAFFIC_SECRET_0 "); ok {
			secret, err := hex.DecodeString(strings.Fields(rest)[1])
			if err != nil {
				t.Fatal(err)
			}
			w.use(secret)
			return w
		}
	}
	t.Fatal("no secret was logged")
	return nil
}

func (w *recordWriter) expand(label string, length int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(length))
	info = append(info, byte(len("tls13 ")+len(label)))
	info = append(info, "tls13 "+label...)
	expanded, err := hkdf.Expand(w.hash, w.secret, string(append(info, 0)), length)
	if err != nil {
		w.t.Fatal(err)
	}
	return expanded
}

func (w *recordWriter) use(secret []byte) {
	w.secret, w.number = secret, 0
	block, err := aes.NewCipher(w.expand("key", map[int]int{sha256.Size: 16, sha512.Size384: 32}[len(secret)]))
	if err != nil {
		w.t.Fatal(err)
	}
	if w.sealer, err = cipher.NewGCM(block); err != nil {
		w.t.Fatal(err)
	}
	w.iv = w.expand("iv", 12)
}

func (w *recordWriter) write(kind byte, content string) error {
	nonce := bytes.Clone(w.iv)
	for i := range 8 {
		nonce[4+i] ^= byte(w.number >> (56 - 8*i))
	}
	w.number++
	inner := append([]byte(content), kind)
	header := []byte{0x17, 3, 3, 0, byte(len(inner) + w.sealer.Overhead())}
	_, err := w.socket.Write(w.sealer.Seal(header, nonce, inner, header))
	return err
}

// TestSecure_ChangesOfKeys: a peer may ask for new keys, which TLS answers in a read. The
// answers leave before what is written next, and nobody waits for the peer to take them.
func TestSecure_ChangesOfKeys(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		_, plain := serveSecure(t, config, echoLines)
		socket := plain()
		var log strings.Builder
		client := tls.Client(socket, &tls.Config{InsecureSkipVerify: true, KeyLogWriter: &log})
		if err := client.Handshake(); err != nil {
			t.Fatal(err)
		}
		w := newRecordWriter(t, socket, client.ConnectionState().CipherSuite, log.String())
		for range 50 {
			err := w.write(22, "\x18\x00\x00\x01\x01") // new keys, and new ones of yours
			w.use(w.expand("traffic upd", len(w.secret)))
			if err := errors.Join(err, w.write(23, "line\n")); err != nil {
				t.Fatal(err)
			}
			expect(t, client, "line\n")
		}
	})
}

// TestSecure_AnswersThatNobodyTakes: a peer that asks for new keys again and again and
// reads nothing stops nobody else, and what is kept for it is bounded: sooner or later its
// connection ends.
func TestSecure_AnswersThatNobodyTakes(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		s, plain := serveSecure(t, config, func(conn *eventloop.Conn) error {
			line, err := conn.Reader().Until('\n')
			if err == nil && string(line) != "quiet\n" {
				conn.Writer().Append(line)
			}
			return err
		})
		socket := plain()
		if err := socket.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		client := tls.Client(socket, &tls.Config{InsecureSkipVerify: true, KeyLogWriter: &log})
		if err := client.Handshake(); err != nil {
			t.Fatal(err)
		}
		w := newRecordWriter(t, socket, client.ConnectionState().CipherSuite, log.String())
		for range 5000 {
			err := w.write(22, "\x18\x00\x00\x01\x01")
			w.use(w.expand("traffic upd", len(w.secret)))
			if errors.Join(err, w.write(23, "quiet\n")) != nil {
				// Too many answers wait.
				if err := receive(t, s.closed, "OnClose"); err == nil {
					t.Error("the connection has closed without a reason")
				}
				break
			}
		}
		good := s.connect()
		send(t, good, "line\n")
		expect(t, good, "line\n")
		socket.Close()
	})
}
