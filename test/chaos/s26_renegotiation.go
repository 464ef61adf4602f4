package main

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
)

// overheard is a socket with what the server of its connection began with.
type overheard struct {
	net.Conn
	mu    sync.Mutex
	first []byte
}

func (o *overheard) note(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.first) < 64 {
		o.first = append(o.first, b...)
	}
}

// heardConn notes what is read, saidConn what is written.
type heardConn struct{ *overheard }

func (c heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.note(b[:n])
	return n, err
}

type saidConn struct{ *overheard }

func (c saidConn) Write(b []byte) (int, error) {
	c.note(b)
	return c.Conn.Write(b)
}

// askConfig is TLS 1.2 with the one suite that askAgain knows.
func askConfig(log io.Writer) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, KeyLogWriter: log}
}

// askAgain sends a message of a handshake on a connection of TLS 1.2 as its next record,
// which package crypto/tls does not do: sequence is how many records of that side were
// encrypted before. keys is what it has logged.
func askAgain(socket *overheard, keys string, server bool, sequence uint64, message []byte) error {
	words := strings.Fields(keys)
	const randomAt = 11 // behind the heads of record and message, and a version
	socket.mu.Lock()
	first := slices.Clone(socket.first)
	socket.mu.Unlock()
	if len(words) < 3 || words[0] != "CLIENT_RANDOM" || len(first) < randomAt+32 {
		return errors.New("the keys are not known")
	}
	clientRandom, err := hex.DecodeString(words[1])
	if err != nil {
		return err
	}
	master, err := hex.DecodeString(words[2])
	if err != nil {
		return err
	}
	// RFC 5246, 6.3 and RFC 5288, 3: two keys of 16 bytes, two parts of nonces of 4.
	block := expand(master, slices.Concat([]byte("key expansion"), first[randomAt:randomAt+32], clientRandom), 40)
	key, nonce := block[:16], block[32:36]
	if server {
		key, nonce = block[16:32], block[36:40]
	}
	sealer, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	gcm, err := cipher.NewGCM(sealer)
	if err != nil {
		return err
	}
	explicit := binary.BigEndian.AppendUint64(nil, sequence)
	head := []byte{22, 3, 3}
	known := binary.BigEndian.AppendUint16(slices.Concat(explicit, head), uint16(len(message)))
	body := gcm.Seal(explicit, slices.Concat(nonce, explicit), message, known)
	record := append(binary.BigEndian.AppendUint16(head, uint16(len(body))), body...)
	_, err = socket.Conn.Write(record)
	return err
}

// expand is the pseudorandom function of TLS 1.2.
func expand(secret, seed []byte, length int) (out []byte) {
	sum := func(parts ...[]byte) []byte {
		mac := hmac.New(sha256.New, secret)
		for _, part := range parts {
			mac.Write(part)
		}
		return mac.Sum(nil)
	}
	for a := sum(seed); len(out) < length; a = sum(a) {
		out = append(out, sum(a, seed)...)
	}
	return out[:length]
}

// renegotiation has a client, and then a server, of TLS 1.2 ask for a second handshake
// on a connection that carries calls.
func renegotiation(ctx context.Context, size size, s *secured, seen *figures) error {
	good, err := s.authority.issue(nil)
	if err != nil {
		return err
	}
	server, _, err := s.start(good, nil)
	if err != nil {
		return err
	}
	own, err := good.pair()
	if err != nil {
		return err
	}
	said, err := clientAsks(server.Address, own, s.authority)
	if err != nil {
		return err
	}
	refused := refusesAgain(said)
	seen.note("a client that asks for renegotiation is told %q", alertText(said))
	asking, err := startAsking(own)
	if err != nil {
		return err
	}
	s.closing.add(asking.close)
	files, err := store(s.folder, "client", good, s.authority)
	if err != nil {
		return err
	}
	one, err := s.caller(asking.listener.Addr().String(), fulmar.TTHeader, fulmar.ClientTLS{Files: files}, nil)
	if err != nil {
		return err
	}
	first, second := *one.call(ctx), *one.call(ctx)
	select {
	case said = <-asking.said:
	case <-time.After(10 * time.Second):
		said = errors.New("nothing")
	}
	// The alert for that is a warning, behind which the connection ends: a server of
	// package crypto/tls sees the end only, and the client's error says why.
	ends := first.Err == nil && second.Err != nil && strings.Contains(second.Err.Error(), "no renegotiation") && said != nil
	seen.note("a server that asks for it sees %q, its caller %q", alertText(said), fmt.Sprint(second.Err))
	seen.most("renegotiated, or not told so", float64(boolToInt(!refused)+boolToInt(!ends)), 0, "")
	s.books = s.books[:0] // Those calls were another server's.
	return alive26(ctx, s, server.Address, files, seen)
}

// alive26 makes a call over each protocol, all of which must succeed.
func alive26(ctx context.Context, s *secured, address string, files fulmar.CertificateFiles, seen *figures) error {
	good := 0
	for _, protocol := range fourProtocols() {
		one, err := s.caller(address, protocol, fulmar.ClientTLS{Files: files}, nil)
		if err != nil {
			return err
		}
		good += boolToInt(one.call(ctx).Err == nil)
	}
	seen.least("protocols served afterwards", float64(good), 4, "")
	return nil
}

// alertText is what a peer says, without where.
func alertText(err error) string {
	var remote *net.OpError
	if errors.As(err, &remote) {
		return remote.Err.Error()
	}
	return fmt.Sprint(err)
}

// refusesAgain reports whether a peer ends the connection over the question, and not over
// a record that it cannot read. Its alert may be lost with the connection.
func refusesAgain(err error) bool {
	var remote *net.OpError
	alert := errors.As(err, &remote) && remote.Op == "remote error" && !strings.Contains(remote.Err.Error(), "MAC")
	return alert || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// clientAsks makes a call and asks for another handshake then. It returns how reading
// ends.
func clientAsks(address string, own tls.Certificate, a *authority) (said, err error) {
	socket, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	_ = socket.SetDeadline(time.Now().Add(10 * time.Second))
	heard := &overheard{Conn: socket}
	var keys bytes.Buffer
	config := askConfig(&keys)
	config.RootCAs, config.ServerName, config.Certificates = a.pool(), "127.0.0.1", []tls.Certificate{own}
	conn := tls.Client(heardConn{heard}, config)
	message, err := callMessage(&chaosapi.Request{})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(framed(message)); err != nil {
		return nil, err
	}
	if _, err := conn.Read(make([]byte, 4<<10)); err != nil {
		return nil, err
	}
	// The hello of a client, as that of a first handshake but for its random bytes; the
	// server has to decide before it looks into it.
	hello := slices.Concat([]byte{1, 0, 0, 43, 3, 3}, make([]byte, 32), []byte{0, 0, 2, 0xc0, 0x2b, 1, 0}, []byte{0, 0})
	// Before it came the end of the handshake and one record with the call.
	if err := askAgain(heard, keys.String(), false, 2, hello); err != nil {
		return nil, err
	}
	_, said = conn.Read(make([]byte, 1))
	return said, nil
}

// asking is a server that answers one call and asks for another handshake over the
// second.
type asking struct {
	listener net.Listener
	said     chan error
	ended    chan struct{}
}

func startAsking(own tls.Certificate) (*asking, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &asking{listener: listener, said: make(chan error, 1), ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		a.said <- a.serve(conn, own)
	}()
	return a, nil
}

func (a *asking) close() {
	_ = a.listener.Close()
	<-a.ended
}

func (a *asking) serve(socket net.Conn, own tls.Certificate) error {
	_ = socket.SetDeadline(time.Now().Add(10 * time.Second))
	saying := &overheard{Conn: socket}
	var keys bytes.Buffer
	config := askConfig(&keys)
	config.Certificates = []tls.Certificate{own}
	conn := tls.Server(saidConn{saying}, config)
	frame, err := readTTHeader(conn)
	if err != nil {
		return err
	}
	reply, err := frame.reply()
	if err != nil {
		return err
	}
	if _, err := conn.Write(reply.frame); err != nil {
		return err
	}
	if _, err := readTTHeader(conn); err != nil {
		return err
	}
	// Before it came the end of the handshake and one record with the reply.
	if err := askAgain(saying, keys.String(), true, 2, make([]byte, 4)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
