package fulmar_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// TestClient_TellsWhatIsLeftAfterTheQueue: a call that has waited for the only connection
// finds that it can be shared now, and tells the server how long its caller still waits,
// not how long he did in the beginning.
func TestClient_TellsWhatIsLeftAfterTheQueue(t *testing.T) {
	var requests chan headedMessage
	var held chan struct{}
	serve := func(conn net.Conn) {
		for i := 0; ; i++ {
			call, err := nextHeaded(conn)
			if err != nil {
				return
			}
			requests <- call
			head := ttheader.Head{Sequence: call.HeaderSequence}
			if i == 1 { // the first one says that it cannot share connections
				<-held
				head.Strings = pairs("fulmar-caps", "mux")
			}
			_, _ = conn.Write(headed(t, head, message(thriftwire.Reply, "add", call.Sequence, sumBody(t, addition(call)))))
		}
	}
	config := fulmar.ClientConfig{MaxConnections: 1, Timeout: 5 * time.Second}
	withFake(t, simnet.Config{}, config, serve, func(client *fulmar.Client) {
		requests, held = make(chan headedMessage), make(chan struct{})
		api := testservice.NewEchoClient(client)
		add := func(left int32) {
			if sum, err := api.Add(context.Background(), left, 1); sum != left+1 || err != nil {
				t.Errorf("Add = %d, %v", sum, err)
			}
		}
		first := call(1, func(int) { add(1) })
		<-requests
		first.Wait()
		second := call(1, func(int) { add(2) })
		<-requests
		third := call(1, func(int) { add(3) })
		synctest.Wait()
		time.Sleep(2 * time.Second)
		held <- struct{}{}
		if told := (<-requests).ints[wire.KeyTimeout]; told != "3000" {
			t.Errorf("the call that waited for 2 s of its 5 says that it waits for %s ms", told)
		}
		second.Wait()
		third.Wait()
	})
}
