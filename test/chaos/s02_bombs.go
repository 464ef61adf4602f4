package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// strictMessage is a Thrift message that calls a method with a body.
func strictMessage(method string, body []byte) []byte {
	message := []byte{0x80, 1, 0, 1}
	message = binary.BigEndian.AppendUint32(message, uint32(len(method)))
	message = append(message, method...)
	message = append(message, 0, 0, 0, 1)
	return append(message, body...)
}

func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

// headed is a message behind a TTHeader.
func headed(message []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(14+len(message)))
	frame = append(frame, 0x10, 0, 0, 1, 0, 0, 0, 7, 0, 1, 0, 0, 0, 0)
	return append(frame, message...)
}

// argument is a body of one field with id 1, which is a struct of one field.
func argument(fieldType byte, id byte, value ...byte) []byte {
	body := append([]byte{12, 0, 1, fieldType, 0, id}, value...)
	return append(body, 0, 0)
}

// bombFamily are messages of at most 1 KiB that announce much.
func bombFamily() map[string][]byte {
	const much = "\x01\x31\x2d\x00" // 20,000,000
	nested := []byte{}
	for range 60 {
		nested = append(nested, 15, 0, 0, 0, 1)
	}
	bodies := map[string][]byte{
		"list of strings":         argument(15, 2, []byte("\x0b"+much)...),
		"list of structs":         argument(15, 9, []byte("\x0c"+much)...),
		"list of bools":           argument(15, 9, []byte("\x02"+much)...),
		"set of i64":              argument(14, 9, []byte("\x0a"+much)...),
		"map of strings":          argument(13, 3, []byte("\x0b\x0b"+much)...),
		"map of structs":          argument(13, 9, []byte("\x0b\x0c"+much)...),
		"map of bools":            argument(13, 9, []byte("\x02\x02\x7f\xff\xff\xff")...),
		"string":                  argument(11, 9, []byte("\x3f\xff\xff\xff")...),
		"negative list":           argument(15, 2, []byte("\x0b\xff\xff\xff\xff")...),
		"nested lists":            argument(15, 9, append(append([]byte{15, 0, 0, 0, 1}, nested...), []byte("\x0b"+much)...)...),
		"list of empty structs":   argument(15, 9, append([]byte{12, 0, 0, 3, 0}, make([]byte, 768)...)...),
		"lists of lists of lists": argument(15, 9, bytes.Repeat([]byte{15, 0, 1, 0, 0}, 100)...),
	}
	messages := map[string][]byte{
		"long frame":        {0x3f, 0xff, 0xff, 0xff, 0x80, 1, 0, 1},
		"long name":         append([]byte{0x80, 1, 0, 1, 0x7f, 0xff, 0xff, 0xff}, "call"...),
		"long TTHeader":     {0x3f, 0xff, 0xff, 0xf0, 0x10, 0, 0, 1, 0, 0, 0, 7, 0xff, 0xff, 0, 0},
		"TTHeader of pairs": {0, 0, 0, 30, 0x10, 0, 0, 0, 0, 0, 0, 7, 0, 4, 0, 0, 1, 0xff, 0xff, 0, 1, 'k', 0, 1, 'v', 0, 0, 0, 0, 0, 0, 0, 0, 0},
	}
	for name, body := range bodies {
		message := strictMessage("nest", body)
		messages["framed "+name] = framed(message)
		messages["bare "+name] = message
		messages["TTHeader "+name] = headed(message)
	}
	return messages
}

// throwAt sends bytes to a server and reads what it says, until it closes, a
// short time has passed, or something came.
func throwAt(address string, sent []byte, patience time.Duration) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return fmt.Errorf("the server takes no connections: %w", err)
	}
	defer reset(conn)
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = conn.Write(sent)
	_, _ = conn.Read(make([]byte, 4<<10))
	return nil
}

// bombs is S2: short messages announce lists, maps and strings of millions.
func bombs(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 1, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	server := fleet.servers[0]
	family := bombFamily()
	var worstBytes int64
	var worstTime time.Duration
	for name, bomb := range family {
		if len(bomb) > 1<<10 {
			return seen, fmt.Errorf("%s has %d bytes", name, len(bomb))
		}
		memory, ran := server.residentBytes(), server.share().ran
		if err := throwAt(server.Address, bomb, 20*time.Millisecond); err != nil {
			return seen, fmt.Errorf("after %s: %w", name, err)
		}
		worstBytes = max(worstBytes, server.residentBytes()-memory)
		worstTime = max(worstTime, server.share().ran-ran)
	}
	before, thrown := server.residentBytes(), 0
	for thrown < size.of(100, 1000) {
		for _, bomb := range family {
			if err := throwAt(server.Address, bomb, time.Millisecond); err != nil {
				return seen, err
			}
			thrown++
		}
	}
	seen.note("kinds %d", len(family))
	seen.most("memory each", mib(worstBytes), 16, " MiB")
	seen.mostUnlessBusy("processor each", ms(worstTime), 50, " ms", 0)
	seen.most(fmt.Sprintf("memory of %d", thrown), mib(server.peakBytes()-before), 64, " MiB")
	return seen, alive(ctx, &closing, server.Address, &seen)
}

// alive makes a call over each protocol, all of which must succeed.
func alive(ctx context.Context, closing *closing, address string, seen *figures) error {
	var ids callers
	all, err := protocolCallers(closing, &ids, address, 1, 5*time.Second, 0)
	if err != nil {
		return err
	}
	good := 0
	for _, one := range all {
		if call := one.call(ctx); call.Err == nil {
			good++
		}
	}
	seen.least("protocols served afterwards", float64(good), float64(len(all)), "")
	return nil
}

// depth is S3: values that nest a million times.
func depth(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 1, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	server := fleet.servers[0]
	const deep = 1_000_000
	before := server.residentBytes()
	refused, kinds := 0, 0
	for _, level := range [][]byte{
		{12, 0, 1},       // Node.next, which the server knows.
		{12, 0, 99},      // A struct that it does not know.
		{15, 0, 0, 0, 1}, // Lists of lists, maps of maps.
		{13, 13, 0, 0, 0, 1},
	} {
		body := bytes.Repeat(level, deep)
		switch {
		case level[0] == 12:
			body = append([]byte{12, 0, 1}, append(body, make([]byte, deep+2)...)...)
		case level[0] == 15:
			body = append([]byte{12, 0, 1, 15, 0, 99}, body...)
		default:
			body = append([]byte{12, 0, 1, 13, 0, 99, 13}, body...)
		}
		message := strictMessage("nest", body)
		for _, sent := range [][]byte{framed(message), headed(message)} {
			kinds++
			if err := refuses(server.Address, sent); err != nil {
				seen.note("%v", err)
				continue
			}
			refused++
		}
	}
	seen.least("refused", float64(refused), float64(kinds), "")
	// Three messages may be in its memory at a time, and their garbage.
	seen.most("memory", mib(server.peakBytes()-before), 64, " MiB")
	node := &chaosapi.Node{}
	for range deep {
		node = &chaosapi.Node{Next: node}
	}
	api, err := client(&closing, fulmar.ClientConfig{Target: server.Address})
	if err != nil {
		return seen, err
	}
	if _, err := api.Nest(ctx, node); err == nil {
		return seen, fmt.Errorf("a value that nests %d times was sent", deep)
	}
	if _, err := thrift.Marshal(node); err == nil {
		return seen, fmt.Errorf("a value that nests %d times was encoded", deep)
	}
	seen.note("writing it is refused")
	return seen, alive(ctx, &closing, server.Address, &seen)
}

// refuses sends a message, which the server must answer with an exception or by
// closing the connection.
func refuses(address string, sent []byte) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	go func() { _, _ = conn.Write(sent) }()
	answer := make([]byte, 64)
	n, err := io.ReadAtLeast(conn, answer, 16)
	var failed net.Error
	switch at := bytes.Index(answer[:n], []byte{0x80, 1, 0}); {
	case at >= 0 && at+3 < n && answer[at+3] == 3:
		return nil
	case at >= 0:
		return fmt.Errorf("it was answered with type %d", answer[at+3])
	case err == nil:
		return fmt.Errorf("it was answered with % x", answer[:n])
	default:
		if failed, _ = err.(net.Error); failed != nil && failed.Timeout() {
			return fmt.Errorf("it was not answered: %w", err)
		}
		return nil
	}
}
