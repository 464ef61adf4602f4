package fulmar_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// statusOf calls a method that fails, as a peer that takes so many bytes of headers. It
// returns text and details.
func (s *simulation) statusOf(headerListBytes int) (text, details string) {
	s.t.Helper()
	peer := s.http2Peer(http2.Config{HeaderListBytes: headerListBytes})
	peer.listen(time.Second)
	id := peer.send(grpcMessage([]byte{0}, false), true)
	if peer.listen(time.Second) || peer.status[id]["grpc-status"] != "5" {
		s.t.Errorf("with %d bytes of headers: status %v", headerListBytes, peer.status[id]["grpc-status"])
	}
	defer peer.close()
	return grpc.DecodeMessage(peer.status[id]["grpc-message"]), peer.status[id]["grpc-status-details-bin"]
}

// TestGRPC_LongErrorTexts: what leaves of the text of an error is bounded, and fits what the
// peer takes.
func TestGRPC_LongErrorTexts(t *testing.T) {
	whole := strings.Repeat("\u00e9", 1<<20)
	stub := &testservice.Stub{OnNothing: func(context.Context) error { return fulmar.NewError(fulmar.NotFound, whole) }}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		for _, test := range []struct{ headers, least, most int }{
			{64 << 20, limits.ErrorMessageBytes - 1, limits.ErrorMessageBytes},
			{limits.HTTP2HeaderListBytes, limits.ErrorMessageBytes - 1, limits.ErrorMessageBytes},
			{8 << 10, 1 << 10, 8 << 10 / 3},
			{400, 20, 100},
			{200, 0, 0},
		} {
			text, _ := s.statusOf(test.headers)
			if len(text) < test.least || len(text) > test.most || !utf8.ValidString(text) {
				t.Errorf("with %d bytes of headers: a text of %d bytes, want %d to %d of UTF-8", test.headers, len(text), test.least, test.most)
			}
			if kept, cut := strings.CutSuffix(text, "... (cut)"); test.most > 0 && !cut || !strings.HasPrefix(whole, kept) {
				t.Errorf("with %d bytes of headers: the text is %.30q ... %q", test.headers, text, text[max(len(text)-20, 0):])
			}
		}
	})
}

// TestGRPC_LongErrorDetails: the details of an error leave as a whole or not at all, and
// then the text says so.
func TestGRPC_LongErrorDetails(t *testing.T) {
	length, text := 0, ""
	stub := &testservice.Stub{OnNothing: func(context.Context) error {
		return fulmar.NewError(fulmar.NotFound, text).WithDetails(make([]byte, length))
	}}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		for _, text = range []string{"not here", strings.Repeat("x", 1<<20)} {
			for _, test := range []struct {
				headers, length int
				left            bool
			}{
				{64 << 20, limits.ErrorDetailsBytes, true},
				{64 << 20, limits.ErrorDetailsBytes + 1, false},
				{limits.HTTP2HeaderListBytes, 8 << 10, true},
				{limits.HTTP2HeaderListBytes, limits.ErrorDetailsBytes, false},
			} {
				length = test.length
				got, details := s.statusOf(test.headers)
				note := fmt.Sprintf(" (%d bytes of details left out)", length)
				if (details != "") != test.left || strings.HasSuffix(got, note) == test.left || len(got) > limits.ErrorMessageBytes {
					t.Errorf("%d bytes of details, with %d bytes of headers: %d bytes in base64, text ... %q", length, test.headers, len(details), got[max(len(got)-40, 0):])
				}
			}
		}
	})
}
