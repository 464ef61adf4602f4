package eventloop_test

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// An echo server for lines, and a client for it.
func Example() {
	listener, err := eventloop.Listen("tcp", "127.0.0.1:0", eventloop.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error, 1)
	go func() {
		served <- listener.Serve(context.Background(), func(conn *eventloop.Conn) error {
			line, err := conn.Reader().Until('\n')
			if err != nil {
				return err // eventloop.ErrMore: call me again when more has arrived
			}
			conn.Writer().Append(line)
			return nil // flushed once at the end of the batch
		})
	}()

	conn, err := eventloop.Dial(context.Background(), "tcp", listener.Addr().String(), eventloop.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprint(conn, "first\nsecond\n")
	for range 2 {
		line, err := conn.Reader().Until('\n')
		fmt.Printf("%q %v\n", line, err)
	}
	fmt.Println(conn.Close(), listener.Shutdown(context.Background()), <-served)
	// Output:
	// "first\n" <nil>
	// "second\n" <nil>
	// <nil> <nil> <nil>
}

// A handler that lets another goroutine reply later. The hold keeps the
// connection open until then, even if the client has stopped sending.
func ExampleConn_Hold() {
	listener, err := eventloop.Listen("tcp", "127.0.0.1:0", eventloop.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error, 1)
	go func() {
		served <- listener.Serve(context.Background(), func(conn *eventloop.Conn) error {
			line, err := conn.Reader().Until('\n')
			if err != nil {
				return err
			}
			reply := bytes.ToUpper(line) // line is valid until the handler returns
			conn.Hold()
			go func() {
				defer conn.Release()
				if _, err := conn.WriteBuffers([][]byte{[]byte("you said "), reply}); err != nil {
					fmt.Println(err)
				}
			}()
			return nil
		})
	}()

	conn, err := eventloop.Dial(context.Background(), "tcp", listener.Addr().String(), eventloop.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprint(conn, "hello\n")
	fmt.Println(conn.CloseWrite())
	replies, err := io.ReadAll(conn)
	fmt.Printf("%q %v\n", replies, err)
	fmt.Println(conn.Close(), listener.Shutdown(context.Background()), <-served)
	// Output:
	// <nil>
	// "you said HELLO\n" <nil>
	// <nil> <nil> <nil>
}
