package fulmar_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire/kitexprotobuf"
)

// TestProtobuf_RepliesWithoutTheirHeader end the connection of a client that sends a
// TTHeader, as those in Thrift do: who waits on a shared connection would otherwise do
// so until his time is over.
func TestProtobuf_RepliesWithoutTheirHeader(t *testing.T) {
	exception := thriftwire.ApplicationException{Type: thriftwire.ExceptionUnknownMethod, Message: "no such thing"}
	body := make([]byte, kitexprotobuf.ExceptionSize(exception))
	kitexprotobuf.PutException(body, exception)
	for name, answer := range map[string][]byte{
		"a reply":      protobufMessage(thriftwire.Reply, "m", 1, hi),
		"an exception": protobufMessage(thriftwire.Exception, "m", 1, body),
	} {
		for _, shared := range []bool{false, true} {
			client := dialAny(t, fulmar.ClientConfig{Target: answering(t, answer), AssumeMultiplexed: shared})
			request, reply := slices.Clone(hi), fulmar.Raw(nil)
			e := asError(t, client.Call(t.Context(), protobufMethod(t, "m", false), &request, &reply))
			if e.Code() == fulmar.DeadlineExceeded || e.Origin() != fulmar.OriginTransport || !strings.Contains(e.Message(), "without a TTHeader") {
				t.Errorf("%s, shared %v: %v", name, shared, e)
			}
		}
	}
}
