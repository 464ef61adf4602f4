package yamlpolicy_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/contrib/yamlpolicy"
)

// write makes a file of a text, in place of what there is.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wrong are texts of files that are no policy, with what is said of them.
var wrong = map[string]string{
	"":                                    "it is empty",
	"# nothing yet":                       "it is empty",
	"client: [":                           "document: yaml: line 1: ",
	"client: {retry: {attempts: .nan}}":   "client.retry.attempts: NaN (want a whole number)",
	"client: {retry: {attempts: .inf}}":   "client.retry.attempts: +Inf (want a whole number)",
	"client: {methods: {1: {}}}":          "client.methods: a map",
	"client: {colour: 1, timeout: 1s}":    "client: unknown field \"colour\"",
	"client: {timeout: 1s}\n---\nmore: 1": "document: more than one",
}

func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.yaml")
	expect := func(what, part string) {
		t.Helper()
		if _, err := yamlpolicy.Read(name); err == nil || !strings.Contains(err.Error(), "policy file "+name+": "+part) {
			t.Errorf("%s: %v, want what has %q", what, err, part)
		}
	}
	expect("no file", "no such file")
	for text, part := range wrong {
		write(t, name, text)
		expect(text, part)
	}
	write(t, name, strings.Repeat("#", 1+yamlpolicy.DocumentBytes))
	expect("a long file", "document: 1048577 bytes (limit 1048576)")
	write(t, name, "client: {timeout: 3s}")
	if document, err := yamlpolicy.Read(name); err != nil || document.Client.Timeout != 3*time.Second {
		t.Errorf("%+v, %v", document, err)
	}
	name = t.TempDir()
	expect("a folder", "it is no regular file (mode d")
}

// watched is what a source has told of a file.
type watched struct{ delivered, reported []string }

// watch runs a source of a file in a bubble, while changes are made to it.
func watch(t *testing.T, name string, changes func()) (seen watched) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ctx = cluster.WithReport(ctx, func(err error) { seen.reported = append(seen.reported, err.Error()) })
	ended := make(chan error)
	go func() {
		ended <- yamlpolicy.File(name)(ctx, func(document []byte, _ string) { seen.delivered = append(seen.delivered, string(document)) })
	}()
	time.Sleep(yamlpolicy.FileInterval / 2) // between two looks
	changes()
	stop()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
	return seen
}

// TestFile_IsReadAgain runs in virtual time; the file is a real one.
func TestFile_IsReadAgain(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, name, "client: {timeout: 1s}")
	synctest.Test(t, func(t *testing.T) {
		seen := watch(t, name, func() {
			time.Sleep(3 * yamlpolicy.FileInterval)
			write(t, name, "client: {timeout: 9") // somebody who writes slowly
			time.Sleep(yamlpolicy.FileInterval)
			write(t, name, "client: {timeout: 2s}")
			time.Sleep(3 * yamlpolicy.FileInterval)
		})
		want := watched{delivered: []string{`{"client":{"timeout":"1s"}}`, `{"client":{"timeout":"2s"}}`}}
		if !reflect.DeepEqual(seen, want) {
			t.Errorf("%q, want %q", seen, want)
		}
	})
}

// TestFile_SlowWritersAfterTrouble: what follows trouble counts as any change does, when it
// is still there at the next look.
func TestFile_SlowWritersAfterTrouble(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.yaml")
	synctest.Test(t, func(t *testing.T) {
		seen := watch(t, name, func() {
			time.Sleep(time.Minute)
			write(t, name, "")
			time.Sleep(time.Minute)
			write(t, name, "client:\n  timeout: 1s\n")
			time.Sleep(yamlpolicy.FileInterval)
			write(t, name, "client:\n  timeout: 1s\n  retry: {attempts: 3}\n")
			time.Sleep(time.Minute)
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		})
		if want := []string{`{"client":{"timeout":"1s","retry":{"attempts":3}}}`}; !reflect.DeepEqual(seen.delivered, want) {
			t.Errorf("delivered %q, want %q", seen.delivered, want)
		}
		parts := []string{"no such file", "it is empty", "no such file"}
		if len(seen.reported) != len(parts) {
			t.Fatalf("reported %q", seen.reported)
		}
		for i, part := range parts {
			if !strings.HasPrefix(seen.reported[i], "policy file "+name+": "+part) {
				t.Errorf("reported %q, want %q", seen.reported[i], part)
			}
		}
	})
}

// TestFile_WrongFilesOfAClient: each is one line of the log, and counts once.
func TestFile_WrongFilesOfAClient(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.yaml")
	for text, part := range wrong {
		write(t, name, text)
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "10.0.0.1:1", PolicySource: yamlpolicy.File(name), Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if n := client.Stats().PoliciesRefused; n != 1 {
				t.Errorf("%q: %d refused", text, n)
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			lines, part := log.String(), strings.ReplaceAll(part, `"`, `\"`)
			if strings.Count(lines, "\n") != 1 || !strings.Contains(lines, "policy file "+name+": "+part) {
				t.Errorf("%q: want one line with %q, got %s", text, part, lines)
			}
		})
	}
}
