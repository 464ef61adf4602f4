package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// litter puts files into the folder of a service that are no instances, from one number to
// below another.
func litter(t *testing.T, d cluster.Directory, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		file, err := os.Create(filepath.Join(d.Path, "shop", fmt.Sprintf("core.%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
	}
}

// TestDirectory_Junk: files that are no instances hide none, however many they are. If they
// are so many that not all are looked at, that is reported, who is known stays, and that
// nobody is found is no list of nobody.
func TestDirectory_Junk(t *testing.T) {
	inFolder(t, func(t *testing.T, d cluster.Directory) {
		var addresses []string
		var registrations []cluster.Registration
		for i := range 20 {
			addresses = append(addresses, fmt.Sprintf("server%02d:1", i))
			registrations = append(registrations, register(t, d, "shop", cluster.Instance{Address: addresses[i]}))
		}
		all := strings.Join(addresses, " ")
		const enough = limits.DirectoryEntries - 100
		litter(t, d, 0, enough)
		w := watching(t, resolverOf(t, d, "shop"))
		synctest.Wait()
		w.expect(t, all)
		if told := w.told(); len(told) != 0 {
			t.Errorf("reported %q", told)
		}
		litter(t, d, enough, limits.DirectoryEntries+1)
		time.Sleep(2 * limits.DirectoryLook)
		synctest.Wait()
		w.expect(t, all)
		if told := w.told(); len(told) != 1 || !strings.Contains(told[0], "shop has more than 40000 files of any kind; instances among the others are not found") {
			t.Errorf("reported %q", told)
		}
		for _, registration := range registrations {
			withdraw(t, registration)
		}
		young := watching(t, resolverOf(t, d, "shop"))
		time.Sleep(2 * limits.DirectoryLook)
		synctest.Wait()
		w.expect(t, all)
		if young.expect(t, "no list"); len(young.told()) != 1 {
			t.Error("it was not reported once")
		}
		if err := os.Remove(filepath.Join(d.Path, "shop", "core.0")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(limits.DirectoryLook)
		synctest.Wait()
		w.expect(t, "")
		young.expect(t, "")
	})
}
