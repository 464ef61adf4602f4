package transport

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
)

// gzipName is the one encoding of messages that there is. Others would stand beside it in
// headers, acceptsGzip and inflate.
const gzipName = "gzip"

// acceptsGzip reports whether a grpc-accept-encoding has it.
func acceptsGzip(list string) bool {
	for word := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(word) == gzipName {
			return true
		}
	}
	return false
}

// inflatePiece is how much memory what comes out of a message gets at first.
const inflatePiece = 4 << 10

// inflate makes the message of a request what it was. Memory follows what comes out, which
// is no more than a message may have.
func (s *serverStream) inflate() error {
	server := s.server.conn.server
	limit, buffers := server.config.Limits.Bytes, server.buffers
	source := bytes.NewReader(s.body)
	reader, ok := server.inflaters.Get().(*gzip.Reader)
	var err error
	if ok {
		err = reader.Reset(source)
	} else {
		reader, err = gzip.NewReader(source)
	}
	if err != nil {
		return &grpc.Error{Code: grpc.Internal, Detail: "message that is no gzip: " + err.Error()}
	}
	out := buffers.Get(min(max(inflatePiece, 2*len(s.body)), limit+1))
	for {
		if len(out) == cap(out) {
			more := append(buffers.Get(2*cap(out)), out...)
			buffers.Put(out)
			out = more
		}
		var n int
		n, err = reader.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if len(out) > limit {
			err = &grpc.Error{Code: grpc.ResourceExhausted, Detail: fmt.Sprintf("message of more than %d bytes when it is inflated (limit %d)", limit, limit)}
			break
		}
		if err == io.EOF {
			buffers.Put(s.body)
			s.body = out
			server.inflaters.Put(reader)
			return nil
		}
		if err != nil {
			err = &grpc.Error{Code: grpc.Internal, Detail: "message that is no gzip: " + err.Error()}
			break
		}
	}
	buffers.Put(out)
	return err
}

// deflated returns a message with its prefix as gzip has it.
func (s *Server) deflated(o *outgoing) []byte {
	var out bytes.Buffer
	out.Grow(o.length() / 2)
	out.Write(make([]byte, grpc.PrefixSize))
	writer, ok := s.deflaters.Get().(*gzip.Writer)
	if ok {
		writer.Reset(&out)
	} else {
		writer = gzip.NewWriter(&out)
	}
	skip := grpc.PrefixSize
	for _, piece := range o.slices(nil) {
		part := piece[min(skip, len(piece)):]
		skip -= len(piece) - len(part)
		_, _ = writer.Write(part) // a bytes.Buffer takes everything
	}
	_ = writer.Close()
	s.deflaters.Put(writer)
	b := out.Bytes()
	grpc.PutPrefix(b, len(b)-grpc.PrefixSize, true)
	return b
}
