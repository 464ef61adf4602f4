// Package streams is what peers do with streams of the service in echo.proto: their generated
// code has the same methods on streams of different types.
package streams

import (
	"errors"
	"io"
	"strconv"

	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// Message is what a generated message has.
type Message interface {
	GetAction() string
	GetMsg() string
}

// Echo answers each message with copied, until the other side ends the stream.
func Echo[M Message](receive func() (M, error), send func(M) error, copied func(action, msg string) M) error {
	for {
		message, err := receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := send(copied(message.GetAction(), message.GetMsg())); err != nil {
			return err
		}
	}
}

// Repeat sends rpc.StreamMessages messages.
func Repeat[M Message](send func(M) error, made func() M) error {
	for range rpc.StreamMessages {
		if err := send(made()); err != nil {
			return err
		}
	}
	return nil
}

// Count receives messages until the stream ends, and returns the content of the answer.
func Count[M Message](receive func() (M, error)) (action, msg string, err error) {
	n, err := 0, error(nil)
	for {
		message, failure := receive()
		if failure != nil {
			err = failure
			break
		}
		n, msg = n+1, message.GetMsg()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strconv.Itoa(n), msg, err
}

// Each gives all messages of a stream to each.
func Each[M Message](receive func() (M, error), each func(action, msg string)) error {
	for {
		message, err := receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		each(message.GetAction(), message.GetMsg())
	}
}

// Exchange sends a message and returns the content of the answer.
func Exchange[M Message](send func(M) error, receive func() (M, error), message M) (action, msg string, err error) {
	if err := send(message); err != nil {
		return "", "", err
	}
	answer, err := receive()
	if err != nil {
		return "", "", err
	}
	return answer.GetAction(), answer.GetMsg(), nil
}
