package transport

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestMux_UnsentCallsGoOnWhenTheSenderLetsGo: a connection fails while its sender, which
// fails as well, still holds a message that it has dropped. The call waits for that, and
// goes over another connection.
func TestMux_UnsentCallsGoOnWhenTheSenderLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := newMuxPeer(t, new(atomic.Int32), func(call *Inbound) { _ = answer(call) })
		if err := muxDo(t.Context(), peer); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the sender may have been slower than the answer
		lost, broken := peer.shared[0], errors.New("broken")
		held := make(chan struct{})
		lost.sender.mu.Lock()
		lost.sender.writing = true // by this test
		lost.sender.sent = func(*outgoing) { <-held }
		lost.sender.mu.Unlock()
		ended := make(chan error, 1)
		go func() { ended <- muxDo(t.Context(), peer) }()
		synctest.Wait()
		go lost.sender.fail(broken)
		synctest.Wait()
		go lost.fail(broken)
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("ended while the sender held the message: %v", err)
		default:
		}
		close(held)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
