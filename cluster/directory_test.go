package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// watch is a Resolve that runs, and what it has said.
type watch struct {
	mu       sync.Mutex
	lists    [][]cluster.Instance
	problems []string
}

// watching runs a resolver until the test ends.
func watching(t *testing.T, resolver cluster.Resolver) *watch {
	t.Helper()
	w := &watch{}
	ctx, cancel := context.WithCancel(context.Background())
	ctx = cluster.WithReport(ctx, func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.problems = append(w.problems, err.Error())
	})
	done := make(chan error, 1)
	go func() {
		done <- resolver.Resolve(ctx, func(list []cluster.Instance) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lists = append(w.lists, slices.Clone(list))
			clear(list) // it is ours
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Resolve ended with %v", err)
		}
	})
	return w
}

// count returns how many lists have come.
func (w *watch) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lists)
}

// told returns what was reported since the last time.
func (w *watch) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.problems = nil }()
	return w.problems
}

// addresses returns those of the last list, in one text.
func (w *watch) addresses() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lists) == 0 {
		return "no list"
	}
	var all []string
	for _, instance := range w.lists[len(w.lists)-1] {
		all = append(all, instance.Address)
	}
	return strings.Join(all, " ")
}

func (w *watch) expect(t *testing.T, want string) {
	t.Helper()
	if got := w.addresses(); got != want {
		t.Errorf("instances %q, want %q", got, want)
	}
}

// inFolder runs a test in a bubble, with a Directory of its own.
func inFolder(t *testing.T, test func(t *testing.T, d cluster.Directory)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registry")
	synctest.Test(t, func(t *testing.T) { test(t, cluster.Directory{Path: path}) })
}

func register(t *testing.T, d cluster.Directory, service string, instance cluster.Instance) cluster.Registration {
	t.Helper()
	registration, err := d.Register(context.Background(), service, instance)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { withdraw(t, registration) })
	return registration
}

func withdraw(t *testing.T, registration cluster.Registration) {
	t.Helper()
	if err := registration.Withdraw(context.Background()); err != nil {
		t.Error(err)
	}
}

func resolverOf(t *testing.T, registry cluster.Registry, service string) cluster.Resolver {
	t.Helper()
	resolver, err := registry.Resolver(service)
	if err != nil {
		t.Fatal(err)
	}
	return resolver
}

// TestDirectory_ComesAndGoes: clients hear of what is registered and withdrawn within a
// look, with all that is known of it, and of nothing else.
func TestDirectory_ComesAndGoes(t *testing.T) {
	inFolder(t, func(t *testing.T, d cluster.Directory) {
		w := watching(t, resolverOf(t, d, "shop"))
		synctest.Wait()
		w.expect(t, "")
		one := cluster.Instance{Address: "127.0.0.1:1", Weight: 7, Zone: "a", Tags: map[string]string{"version": "2"}}
		first := register(t, d, "shop", one)
		register(t, d, "shop", cluster.Instance{Address: "unix:///run/shop"})
		register(t, d, "other", cluster.Instance{Address: "127.0.0.1:3"})
		time.Sleep(limits.DirectoryPoll)
		synctest.Wait()
		w.expect(t, "127.0.0.1:1 unix:///run/shop")
		if got := w.lists[len(w.lists)-1][0]; !reflect.DeepEqual(got, one) {
			t.Errorf("got %+v, want %+v", got, one)
		}
		lists := w.count()
		time.Sleep(time.Hour)
		synctest.Wait()
		if w.expect(t, "127.0.0.1:1 unix:///run/shop"); w.count() != lists {
			t.Errorf("%d lists although nothing changed", w.count()-lists)
		}
		withdraw(t, first)
		withdraw(t, first)
		time.Sleep(limits.DirectoryLook)
		synctest.Wait()
		if w.expect(t, "unix:///run/shop"); len(w.told()) != 0 {
			t.Error("problems were reported")
		}
	})
}

// TestDirectory_TheDead: who does not refresh its file is gone after a while, also if it
// was dead before anybody looked; and there again when it does.
func TestDirectory_TheDead(t *testing.T) {
	inFolder(t, func(t *testing.T, d cluster.Directory) {
		register(t, d, "shop", cluster.Instance{Address: "alive:1"})
		path := filepath.Join(d.Path, "shop", "killed%3A1.json")
		touch := func() {
			if err := os.WriteFile(path, []byte(`{"address":"killed:1"}`), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		touch()
		w := watching(t, resolverOf(t, d, "shop"))
		time.Sleep(limits.DirectoryDead - limits.DirectoryPoll)
		synctest.Wait()
		w.expect(t, "alive:1 killed:1")
		time.Sleep(limits.DirectoryLook + limits.DirectoryPoll)
		synctest.Wait()
		w.expect(t, "alive:1")
		later := watching(t, resolverOf(t, d, "shop"))
		synctest.Wait()
		later.expect(t, "alive:1")
		touch()
		time.Sleep(limits.DirectoryLook)
		synctest.Wait()
		w.expect(t, "alive:1 killed:1")
		later.expect(t, "alive:1 killed:1")
	})
}

// TestDirectory_ClocksJump: what the clock of the machine does kills nobody who is known.
func TestDirectory_ClocksJump(t *testing.T) {
	inFolder(t, func(t *testing.T, d cluster.Directory) {
		register(t, d, "shop", cluster.Instance{Address: "a:1"})
		w := watching(t, resolverOf(t, d, "shop"))
		synctest.Wait()
		path := filepath.Join(d.Path, "shop", "a%3A1.json")
		for _, jump := range []time.Duration{-time.Hour, time.Hour, -24 * time.Hour} {
			// As the clock of a machine that has jumped would have it.
			if err := os.Chtimes(path, time.Now().Add(jump), time.Now().Add(jump)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(limits.DirectoryLook)
			synctest.Wait()
			w.expect(t, "a:1")
		}
	})
}

// TestDirectory_IsLost: somebody removes the folder, or puts something else there. The
// last list stays where nothing is known, and servers are there again within a refresh.
func TestDirectory_IsLost(t *testing.T) {
	inFolder(t, func(t *testing.T, d cluster.Directory) {
		register(t, d, "shop", cluster.Instance{Address: "a:1"})
		w := watching(t, resolverOf(t, d, "shop"))
		synctest.Wait()
		if err := os.RemoveAll(d.Path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(limits.DirectoryPoll)
		synctest.Wait()
		w.expect(t, "")
		time.Sleep(limits.DirectoryRefresh + limits.DirectoryPoll)
		synctest.Wait()
		w.expect(t, "a:1")
		if err := os.RemoveAll(d.Path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.Path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		lists := w.count()
		time.Sleep(time.Minute)
		synctest.Wait()
		told := w.told()
		if w.count() > lists+1 || len(slices.Compact(told)) != 1 || !strings.Contains(told[0], "is not a folder") {
			t.Errorf("%d lists, reported %q", w.count()-lists, told)
		}
		// Not at each look, but as often as others that fail: a list may be empty, and silence
		// would say that it still is.
		if n := int(time.Minute / limits.ResolvePauseMax); len(told) < n-1 || len(told) > n+1 {
			t.Errorf("reported %d times in a minute", len(told))
		}
		if err := os.Remove(d.Path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(limits.DirectoryRefresh + limits.DirectoryPoll)
		synctest.Wait()
		w.expect(t, "a:1")
	})
}

// TestDirectory_HostileFiles are left out, and reported once.
func TestDirectory_HostileFiles(t *testing.T) {
	inFolder(t, func(t *testing.T, d cluster.Directory) {
		register(t, d, "shop", cluster.Instance{Address: "good:1"})
		folder := filepath.Join(d.Path, "shop")
		put := func(name, text string, mode os.FileMode) {
			path := filepath.Join(folder, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Chmod(path, mode), os.Chtimes(path, time.Now(), time.Now())); err != nil {
				t.Fatal(err)
			}
		}
		elsewhere := filepath.Join(t.TempDir(), "elsewhere.json")
		if err := os.WriteFile(elsewhere, []byte(`{"address":"link:1"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, filepath.Join(folder, "link.json")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(folder, "folder.json"), 0o700); err != nil {
			t.Fatal(err)
		}
		put("empty.json", "", 0o600)
		put("half.json", `{"address":"half:1`, 0o600)
		put("list.json", `[]`, 0o600)
		put("long.json", `{"address":"long:1","tags":{"x":"`+strings.Repeat("x", limits.DirectoryFileBytes)+`"}}`, 0o600)
		put("open.json", `{"address":"open:1"}`, 0o606)
		put("control.json", `{"address":"a\n:1"}`, 0o600)
		put("big.json", `{"address":"`+strings.Repeat("x", 2000)+`:1"}`, 0o600)
		put("latin.json", "{\"address\":\"\xff:1\"}", 0o600)
		put(".hidden.json", `{"address":"hidden:1"}`, 0o600)
		put(".new-1", `{"address":"new:1"}`, 0o600)
		put("readme.txt", `{"address":"text:1"}`, 0o600)
		w := watching(t, resolverOf(t, d, "shop"))
		time.Sleep(time.Minute)
		synctest.Wait()
		told := w.told()
		if w.expect(t, "good:1"); len(told) != 1 || !strings.Contains(told[0], "big.json is left out: a text of") || !strings.Contains(told[0], "and 7 others") {
			t.Errorf("reported %q", told)
		}
	})
}

// TestDirectory_UnsafeFolders are not used, neither to register nor to find.
func TestDirectory_UnsafeFolders(t *testing.T) {
	for name, c := range map[string]struct {
		mode os.FileMode
		safe bool
	}{"everybody may write": {0o777, false}, "sticky": {0o777 | os.ModeSticky, true}, "a group": {0o770, true}} {
		t.Run(name, func(t *testing.T) {
			inFolder(t, func(t *testing.T, d cluster.Directory) {
				if err := errors.Join(os.Mkdir(d.Path, 0o700), os.Chmod(d.Path, c.mode)); err != nil {
					t.Fatal(err)
				}
				registration, err := d.Register(context.Background(), "shop", cluster.Instance{Address: "a:1"})
				if (err == nil) != c.safe {
					t.Errorf("register: %v", err)
				}
				if err == nil {
					defer withdraw(t, registration)
				}
				w := watching(t, resolverOf(t, d, "shop"))
				time.Sleep(time.Second)
				synctest.Wait()
				if told := w.told(); c.safe != (len(told) == 0) || c.safe != (w.addresses() == "a:1") {
					t.Errorf("instances %q, reported %q", w.addresses(), told)
				}
			})
		})
	}
}

// TestDirectory_TwoWithOneAddress: who registers later has the file, whoever withdraws
// takes away its own only, and a file whose process has died is taken over.
func TestDirectory_TwoWithOneAddress(t *testing.T) {
	inFolder(t, func(t *testing.T, d cluster.Directory) {
		old := register(t, d, "shop", cluster.Instance{Address: "a:1", Weight: 1})
		young := register(t, d, "shop", cluster.Instance{Address: "a:1", Weight: 2})
		w := watching(t, resolverOf(t, d, "shop"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.expect(t, "a:1"); w.lists[len(w.lists)-1][0].Weight != 2 {
			t.Errorf("%+v", w.lists)
		}
		withdraw(t, old)
		time.Sleep(limits.DirectoryLook)
		synctest.Wait()
		w.expect(t, "a:1")
		withdraw(t, young)
		time.Sleep(limits.DirectoryLook)
		synctest.Wait()
		w.expect(t, "")
	})
}

// TestDirectory_RefusesBadNames.
func TestDirectory_RefusesBadNames(t *testing.T) {
	d := cluster.Directory{Path: t.TempDir()}
	for service, want := range map[string]string{
		"": "is empty", "a/b": "has a slash", "\xff": "not in UTF-8", strings.Repeat("x", 300): "a name of 300 bytes (limit 200)",
	} {
		if _, err := d.Resolver(service); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("resolver of %q: %v", service, err)
		}
		if _, err := d.Register(context.Background(), service, cluster.Instance{Address: "a:1"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("register %q: %v", service, err)
		}
	}
	for address, want := range map[string]string{"": "no address", "a\n:1": "control characters", strings.Repeat("x", 300) + ":1": "its file has a name of"} {
		if _, err := d.Register(context.Background(), "shop", cluster.Instance{Address: address}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("register at %q: %v", address, err)
		}
	}
	if _, err := (cluster.Directory{Path: "relative"}).Resolver("shop"); err == nil || !strings.Contains(err.Error(), "not an absolute path") {
		t.Error(err)
	}
	for _, text := range []string{"..", ".", "a/b", "../../etc/passwd", "a b%", "ä:1"} {
		name := cluster.FileName(text)
		if strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\ ") {
			t.Errorf("the file of %q is %q", text, name)
		}
	}
}

func TestDefaultDirectory(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("FULMAR_REGISTRY", "")
	if got, want := cluster.DefaultDirectory(), fmt.Sprintf("fulmar-%d", os.Getuid()); filepath.Base(got) != want || !filepath.IsAbs(got) {
		t.Errorf("%q", got)
	}
	t.Setenv("XDG_RUNTIME_DIR", filepath.FromSlash("/run/user/1"))
	if got := filepath.ToSlash(cluster.DefaultDirectory()); got != "/run/user/1/fulmar/registry" {
		t.Errorf("%q", got)
	}
	t.Setenv("FULMAR_REGISTRY", "/srv/registry")
	if got := cluster.DefaultDirectory(); got != "/srv/registry" {
		t.Errorf("%q", got)
	}
}

// FuzzAnnouncement: any bytes as the file of an instance: an error, or an instance that is
// within its limits and says the same when it is written and read again.
func FuzzAnnouncement(f *testing.F) {
	for _, text := range []string{
		`{"address":"a:1"}`, `{"address":"unix:///run/a","weight":-1,"zone":"b","tags":{"k":"v"},"owner":"x"}`,
		`{"address":1}`, `{"address":"a:1","tags":[]}`, `{"weight":1e400,"address":"a"}`, `null`, ``, "{\"address\":\"\\u0000\"}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		instance, err := cluster.ParseAnnouncement(data)
		if err != nil {
			return
		}
		if instance.Address == "" || len(instance.Address) > limits.TargetBytes || len(data) > limits.DirectoryFileBytes {
			t.Fatalf("%d bytes became %+v", len(data), instance)
		}
		if name := cluster.FileName(instance.Address); strings.ContainsAny(name, "/\\\x00") || strings.HasPrefix(name, ".") {
			t.Fatalf("its file would be %q", name)
		}
		text, err := json.Marshal(map[string]any{"address": instance.Address, "weight": instance.Weight, "zone": instance.Zone, "tags": instance.Tags})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := cluster.ParseAnnouncement(text); len(text) <= limits.DirectoryFileBytes && (err != nil || !reflect.DeepEqual(again, instance)) {
			t.Fatalf("%+v became %+v, %v", instance, again, err)
		}
	})
}
