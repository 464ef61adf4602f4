package fulmar

import (
	"fmt"
	"io"
	"slices"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// Encoding is a way to compress messages in gRPC besides gzip, such as zstd. Both functions
// begin a message, and are called at the same time. What they return is used again if it
// has Reset as in package compress/gzip: Reset(io.Writer), and Reset(io.Reader) with an
// error or without.
//
// A message that is read may be of anybody, and anything. No more of it is read than
// MaxMessageBytes, and memory follows what was; an error, or a panic, fails its call.
type Encoding struct {
	// Name is what grpc-encoding says: lower case letters, digits, "-", "_" and ".".
	Name string
	// NewWriter returns what compresses into w. Close ends the message. A message that
	// cannot be compressed goes as it is.
	NewWriter func(w io.Writer) io.WriteCloser
	// NewReader returns what a compressed message was. It should not allocate because of
	// what the message says of itself.
	NewReader func(r io.Reader) (io.Reader, error)
}

func transportEncodings(list []Encoding) []transport.Encoding {
	var all []transport.Encoding
	for _, e := range list {
		all = append(all, transport.Encoding(e))
	}
	return all
}

// checkEncodings returns what is wrong with the encodings of a configuration.
func checkEncodings(config string, list []Encoding) (problems []error) {
	if len(list) > limits.GRPCEncodings {
		problems = append(problems, fmt.Errorf("%s: Encodings: %d of them (limit %d)", config, len(list), limits.GRPCEncodings))
	}
	names := []string{"gzip", "identity"}
	for i, e := range list {
		switch {
		case !isEncodingName(e.Name):
			problems = append(problems, fmt.Errorf("%s: Encodings[%d]: %.40q is no name for grpc-encoding", config, i, e.Name))
		case slices.Contains(names, e.Name):
			problems = append(problems, fmt.Errorf("%s: Encodings[%d]: %q is there already", config, i, e.Name))
		case e.NewWriter == nil || e.NewReader == nil:
			problems = append(problems, fmt.Errorf("%s: Encodings[%d]: %q lacks NewWriter or NewReader", config, i, e.Name))
		}
		names = append(names, e.Name)
	}
	return problems
}

func isEncodingName(name string) bool {
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return name != "" && len(name) <= limits.GRPCEncodingNameBytes
}
