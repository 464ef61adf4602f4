package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// forgetAfter is more than how long a server has to look at a file until it removes it.
const forgetAfter = (limits.DirectoryForgetLooks + 2) * limits.DirectoryRefresh

// backdate gives a file of a service the time that it would have if the clock of the
// machine had jumped by so much since it was written.
func backdate(t *testing.T, d cluster.Directory, name string, jump time.Duration) {
	t.Helper()
	at := time.Now().Add(-jump)
	if err := os.Chtimes(filepath.Join(d.Path, "shop", name), at, at); err != nil {
		t.Fatal(err)
	}
}

// abandon writes the file of an instance whose process was killed.
func abandon(t *testing.T, d cluster.Directory, name string, age time.Duration) {
	t.Helper()
	text := fmt.Appendf(nil, `{"address":"%s:1"}`, name)
	if err := os.WriteFile(filepath.Join(d.Path, "shop", name+".json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	backdate(t, d, name+".json", age)
}

// there reports whether a service has a file.
func there(d cluster.Directory, name string) bool {
	_, err := os.Lstat(filepath.Join(d.Path, "shop", name))
	return err == nil
}

// jumps are what clocks of machines do.
var jumps = []time.Duration{-24 * time.Hour, -time.Minute, 20 * time.Second, limits.DirectoryForget + time.Minute, 24 * time.Hour}

// TestDirectory_ClocksJumpAndSomebodyRegisters: nobody who lives loses its file to a server
// that is the first one by the new clock. Clients that know the others keep them, and new
// ones find them within a refresh.
func TestDirectory_ClocksJumpAndSomebodyRegisters(t *testing.T) {
	for _, jump := range jumps {
		t.Run(jump.String(), func(t *testing.T) {
			inFolder(t, func(t *testing.T, d cluster.Directory) {
				register(t, d, "shop", cluster.Instance{Address: "a:1"})
				register(t, d, "shop", cluster.Instance{Address: "b:1"})
				w := watching(t, resolverOf(t, d, "shop"))
				time.Sleep(time.Second)
				backdate(t, d, "a%3A1.json", jump)
				backdate(t, d, "b%3A1.json", jump)
				register(t, d, "shop", cluster.Instance{Address: "c:1"})
				if !there(d, "a%3A1.json") || !there(d, "b%3A1.json") {
					t.Fatal("files of servers that live were removed")
				}
				young := watching(t, resolverOf(t, d, "shop"))
				time.Sleep(limits.DirectoryLook)
				synctest.Wait()
				w.expect(t, "a:1 b:1 c:1")
				time.Sleep(limits.DirectoryRefresh + limits.DirectoryPoll - limits.DirectoryLook)
				synctest.Wait()
				young.expect(t, "a:1 b:1 c:1")
				lists := w.count()
				time.Sleep(2 * forgetAfter)
				synctest.Wait()
				if w.expect(t, "a:1 b:1 c:1"); w.count() != lists || !there(d, "a%3A1.json") {
					t.Errorf("%d lists more", w.count()-lists)
				}
			})
		})
	}
}

// TestDirectory_ClocksJumpAndClientsCome: all files are old by the new clock, so whether
// anybody lives is not known before it could have refreshed its file. A new client is not
// told that there are none until then: its calls would fail.
func TestDirectory_ClocksJumpAndClientsCome(t *testing.T) {
	inFolder(t, func(t *testing.T, d cluster.Directory) {
		register(t, d, "shop", cluster.Instance{Address: "a:1"})
		abandon(t, d, "killed", time.Hour)
		backdate(t, d, "a%3A1.json", time.Hour)
		w := watching(t, resolverOf(t, d, "shop"))
		time.Sleep(limits.DirectoryRefresh - time.Millisecond)
		synctest.Wait()
		if w.count() != 0 {
			t.Errorf("a list: %q", w.addresses())
		}
		time.Sleep(limits.DirectoryPoll + time.Millisecond) // a look may come with the refresh, and before it
		synctest.Wait()
		w.expect(t, "a:1")
	})
}

// TestDirectory_AllAreDead: then the first list says so as soon as it is sure, and has
// nobody who is dead before.
func TestDirectory_AllAreDead(t *testing.T) {
	inFolder(t, func(t *testing.T, d cluster.Directory) {
		withdraw(t, register(t, d, "shop", cluster.Instance{Address: "a:1"}))
		abandon(t, d, "killed", limits.DirectoryDead)
		w := watching(t, resolverOf(t, d, "shop"))
		time.Sleep(limits.DirectoryRefresh + 2*limits.DirectoryPoll)
		synctest.Wait()
		if w.expect(t, ""); w.count() != 1 {
			t.Errorf("%d lists", w.count())
		}
	})
}

// TestDirectory_ForgetsTheDead: files of processes that were killed do not pile up, also if
// they are from the future. Those that may be needed stay, and those that are none of ours.
func TestDirectory_ForgetsTheDead(t *testing.T) {
	inFolder(t, func(t *testing.T, d cluster.Directory) {
		withdraw(t, register(t, d, "shop", cluster.Instance{Address: "a:1"}))
		if err := os.WriteFile(filepath.Join(d.Path, "shop", "notes.txt"), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		backdate(t, d, "notes.txt", limits.DirectoryForget+time.Minute)
		abandon(t, d, "old", limits.DirectoryForget+time.Minute)
		abandon(t, d, ".new-1", limits.DirectoryForget+time.Minute)
		abandon(t, d, "future", -24*time.Hour)
		abandon(t, d, "young", limits.DirectoryForget-time.Minute)
		brief := register(t, d, "shop", cluster.Instance{Address: "b:1"})
		time.Sleep((limits.DirectoryForgetLooks - 1) * limits.DirectoryRefresh)
		synctest.Wait()
		withdraw(t, brief)
		if !there(d, "old.json") {
			t.Error("it was removed too soon")
		}
		lasting := register(t, d, "shop", cluster.Instance{Address: "b:1"})
		time.Sleep(forgetAfter)
		synctest.Wait()
		withdraw(t, lasting)
		if there(d, "old.json") || there(d, "future.json") || there(d, ".new-1.json") || !there(d, "young.json") || !there(d, "notes.txt") {
			t.Error("what is dead stays, or what may live was removed")
		}
	})
}

// TestDirectory_TheSameAddressAndClocksJump: who had the address first does not take the
// file of one that lives, whatever its time is; it does when that has died.
func TestDirectory_TheSameAddressAndClocksJump(t *testing.T) {
	for _, jump := range jumps {
		t.Run(jump.String(), func(t *testing.T) {
			inFolder(t, func(t *testing.T, d cluster.Directory) {
				register(t, d, "shop", cluster.Instance{Address: "a:1", Weight: 1})
				abandon(t, d, "a%3A1", jump)
				refreshes := limits.DirectoryForgetLooks
				for i := range 2 * refreshes {
					time.Sleep(limits.DirectoryRefresh)
					synctest.Wait()
					content, err := os.ReadFile(filepath.Join(d.Path, "shop", "a%3A1.json"))
					if want := `{"address":"a%3A1:1"}`; err != nil || string(content) != want {
						t.Fatalf("look %d: it was taken from one that lives: %s %v", i, content, err)
					}
					backdate(t, d, "a%3A1.json", jump+time.Duration(i))
				}
				time.Sleep(forgetAfter)
				w := watching(t, resolverOf(t, d, "shop"))
				synctest.Wait()
				if w.expect(t, "a:1"); w.lists[0][0].Weight != 1 {
					t.Errorf("%+v", w.lists)
				}
			})
		})
	}
}
