package fulmar_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestStreams_NeverLeft: a stream that is on a connection that breaks before anything of it was
// written has not been executed, and is opened on another one, as a unary call is. Those that
// follow do not go to a connection that cannot write.
func TestStreams_NeverLeft(t *testing.T) {
	for name, protocol := range map[string]fulmar.Protocol{"grpc": fulmar.GRPC, "ttheader": fulmar.TTHeader} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := simnet.New(simnet.Config{})
				serveFeed(t, network, "any:1", fulmar.ServerConfig{}, &feed{}, streamAdder{})
				broken := &brokenNetwork{network: network, before: 1}
				api := testservice.NewFeedClient(feedClient(t, fulmar.ClientConfig{Target: "any:1", Protocol: protocol, Dial: broken.dial}))
				seen, err := api.Swap(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				broken.armed.Store(true)
				unseen, err := api.List(t.Context(), &testservice.Item{Name: "a", Count: 1})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				begun := time.Now()
				everyKind(t, api)
				if took := time.Since(begun); took > 0 {
					t.Errorf("others waited %v for a connection that cannot write", took)
				}
				if item, err := unseen.Recv(); err != nil || item.Name != "a" {
					t.Errorf("the one that never left: %v, %v", item, err)
				}
				if _, err := unseen.Recv(); err != io.EOF {
					t.Errorf("the one that never left ended with %v", err)
				}
				_, err = seen.Recv()
				var failed *fulmar.Error
				if !errors.As(err, &failed) || failed.Code() != fulmar.Unavailable || failed.Executed() != fulmar.ExecutedMaybe {
					t.Errorf("the one that the server may have seen: %v", err)
				}
			})
		})
	}
}
