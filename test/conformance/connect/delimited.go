package main

import (
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"
)

// longest bounds what the suite may say at once. Its longest message is of 200 KiB.
const longest = 16 << 20

// readMessage reads a message behind its length. io.EOF says that there is none.
func readMessage(r io.Reader, into proto.Message) error {
	var prefix [4]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(prefix[:])
	if length > longest {
		return fmt.Errorf("message of %d bytes (limit %d)", length, longest)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("message of %d bytes: %w", length, err)
	}
	return proto.Unmarshal(body, into)
}

// writeMessage writes a message behind its length, at once.
func writeMessage(w io.Writer, message proto.Message) error {
	framed, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 4), message)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(framed, uint32(len(framed)-4))
	_, err = w.Write(framed)
	return err
}
