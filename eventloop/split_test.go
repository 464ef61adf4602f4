package eventloop_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// splitBytes is the length of the message that arrives split at every byte.
const splitBytes = 4096

// frame returns a message with its length in front, 4,096 bytes together.
func frame() []byte {
	message := make([]byte, splitBytes)
	binary.BigEndian.PutUint32(message, splitBytes-4)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range message[4:] {
		message[4+i] = byte(random.Uint32())
	}
	return message
}

// readFrame returns the next message with its length.
func readFrame(r *eventloop.Reader) ([]byte, error) {
	head, err := r.Peek(4)
	if err != nil {
		return nil, err
	}
	return r.Next(4 + int(binary.BigEndian.Uint32(head)))
}

// splits calls try with every way to cut a message in two, and with the message
// byte by byte.
func splits(message []byte, try func(pieces [][]byte)) {
	for at := 1; at < len(message); at++ {
		try([][]byte{message[:at], message[at:]})
	}
	try(slices.Collect(slices.Chunk(message, 1)))
}

func TestSplit_ServedOverTCP(t *testing.T) {
	message := frame()
	arrived := make(chan int, 1)
	s := serve(t, eventloop.Config{}, func(conn *eventloop.Conn) error {
		unread := conn.Reader().Len()
		got, err := readFrame(conn.Reader())
		if err == nil && !bytes.Equal(got, message) {
			t.Error("the message differs")
		}
		arrived <- unread
		return err
	})
	client := s.connect()
	splits(message, func(pieces [][]byte) {
		sent := 0
		for _, piece := range pieces {
			send(t, client, string(piece))
			sent += len(piece)
			for receive(t, arrived, "the handler") < sent {
				continue // TCP may split a piece once more
			}
		}
	})
}

func TestSplit_ServedOverSimnet(t *testing.T) {
	message := frame()
	synctest.Test(t, func(t *testing.T) {
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			got, err := readFrame(conn.Reader())
			conn.Writer().Append(got)
			return err
		})
		client := s.connect()
		splits(message, func(pieces [][]byte) {
			for _, piece := range pieces {
				send(t, client, string(piece))
				synctest.Wait()
			}
			expect(t, client, string(message))
		})
	})
}

func TestSplit_Dialled(t *testing.T) {
	message := frame()
	synctest.Test(t, func(t *testing.T) {
		conn, peer := simConn(t, eventloop.Config{})
		got := make(chan []byte)
		go func() {
			defer close(got)
			for {
				message, err := readFrame(conn.Reader())
				if err != nil {
					return
				}
				got <- bytes.Clone(message)
			}
		}()
		splits(message, func(pieces [][]byte) {
			for _, piece := range pieces {
				send(t, peer, string(piece))
				synctest.Wait()
			}
			if !bytes.Equal(receive(t, got, "the message"), message) {
				t.Fatal("the message differs")
			}
		})
		conn.Close()
		<-got
	})
}

// TestSplit_LinesByteByByte is Until with its memory of what it has searched,
// across calls, slices of the buffer and other delimiters.
func TestSplit_LinesByteByByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			key, err := conn.Reader().Until('=')
			if err != nil {
				return err
			}
			value, err := conn.Reader().Until('\n')
			if err != nil {
				return err
			}
			conn.Writer().Append(value)
			conn.Writer().Append(key)
			return nil
		})
		client := s.connect()
		text := "a=b\nlonger key=longer value\n=\n\n==\n"
		for _, b := range []byte(text) {
			send(t, client, string(b))
			synctest.Wait()
		}
		expect(t, client, "b\na=longer value\nlonger key=\n==\n\n=")
	})
}

// TestReader_UntilSearchesForEachDelimiter looks for one delimiter, and for
// another at the same place.
func TestReader_UntilSearchesForEachDelimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			line, err := conn.Reader().Until('\n')
			if err != nil {
				line, err = conn.Reader().Until(';')
			}
			conn.Writer().Append(line)
			return err
		})
		client := s.connect()
		send(t, client, "a;b")
		expect(t, client, "a;")
		send(t, client, "c\nd;")
		expect(t, client, "bc\nd;")
	})
}
