package outfolder_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/outfolder"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func file(name, text string) emit.File {
	return emit.File{Path: name, Parts: [][]byte{[]byte(emit.Header + "a.thrift. DO NOT EDIT.\n\n"), []byte(text)}}
}

// TestCompare_SaysWhatWriteDoes goes through what can be different, asks, writes,
// and asks again. The tests of cmd/fulmar have what can be in the way.
func TestCompare_SaysWhatWriteDoes(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "gen")
	for _, test := range []struct {
		name  string
		files []emit.File
		want  string
	}{
		{"nothing is there", []emit.File{file("a/x.go", "1"), file("a/y.go", "1")}, "[{a/x.go is missing} {a/y.go is missing}]"},
		{"all is there", []emit.File{file("a/x.go", "1"), file("a/y.go", "1")}, "[]"},
		{"one is stale", []emit.File{file("a/x.go", "2"), file("a/y.go", "1")}, "[{a/x.go differs from what the definitions give}]"},
		{"one is left over", []emit.File{file("a/x.go", "2")}, "[{a/y.go is left over, nothing generates it any more}]"},
		{"another folder", []emit.File{file("a/x.go", "2"), file("b/c/z.go", "1")}, "[{b/c/z.go is missing}]"},
	} {
		differences, err := outfolder.Compare(folder, test.files)
		for i := range differences {
			below, _ := filepath.Rel(folder, differences[i].Name)
			differences[i].Name = filepath.ToSlash(below)
		}
		if got := fmt.Sprint(differences); err != nil || got != test.want {
			t.Errorf("%s: %s, %v, want %s", test.name, got, err, test.want)
		}
		changes, err := outfolder.Write(t.Context(), folder, test.files)
		if err != nil || changes.Written+changes.Removed != len(differences) {
			t.Errorf("%s: %+v, %v", test.name, changes, err)
		}
	}
	byHand := filepath.Join(folder, "a", "x.go")
	if err := os.WriteFile(byHand, []byte("package a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if differences, err := outfolder.Compare(folder, []emit.File{file("a/x.go", "2")}); err == nil {
		t.Errorf("what was written by hand is compared: %v", differences)
	}
}

// endsAfter is a context that ends when it was asked so often.
type endsAfter struct {
	context.Context
	left int
}

func (e *endsAfter) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestWrite_ChangesNothingOnceItIsStopped ends the context before the first file, before
// the last one, and when all wait beside their places.
func TestWrite_ChangesNothingOnceItIsStopped(t *testing.T) {
	before := []emit.File{file("a/x.go", "1"), file("a/y.go", "1")}
	files := []emit.File{file("a/x.go", "2"), file("b/c/z.go", "2")}
	for left := range len(files) + 2 {
		folder := filepath.Join(t.TempDir(), "gen")
		if _, err := outfolder.Write(t.Context(), folder, before); err != nil {
			t.Fatal(err)
		}
		changes, err := outfolder.Write(&endsAfter{t.Context(), left}, folder, files)
		if left > len(files) {
			if err != nil || changes != (outfolder.Changes{Written: 2, Removed: 1}) {
				t.Errorf("it was not stopped: %+v, %v", changes, err)
			}
			continue
		}
		if err == nil || changes != (outfolder.Changes{}) {
			t.Errorf("asked %d times: %+v, %v", left, changes, err)
		}
		if differences, err := outfolder.Compare(folder, before); err != nil || len(differences) > 0 {
			t.Errorf("asked %d times: %v, %v", left, differences, err)
		}
		entries, err := os.ReadDir(filepath.Join(folder, "a"))
		if _, missing := os.Stat(filepath.Join(folder, "b")); err != nil || len(entries) != len(before) || !os.IsNotExist(missing) {
			t.Errorf("asked %d times: something was left: %v, %v, %v", left, entries, err, missing)
		}
	}
}

// TestWrite_RemovesWhatKilledRunsHaveLeft has files that wait beside their places: of a run
// of yesterday, of one that may still be there, and of somebody else.
func TestWrite_RemovesWhatKilledRunsHaveLeft(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "gen")
	files := []emit.File{file("a/x.go", "1")}
	if _, err := outfolder.Write(t.Context(), folder, files); err != nil {
		t.Fatal(err)
	}
	put := func(name string, age time.Duration) {
		name = filepath.Join(folder, "a", name)
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(name, nil, 0o644), os.Chtimes(name, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	put(".fulmar."+strings.Repeat("A", 26), 24*time.Hour)
	put(".fulmar."+strings.Repeat("B", 26), time.Minute)
	put(".fulmar.yaml", 24*time.Hour)
	changes, err := outfolder.Write(t.Context(), folder, files)
	if err != nil || changes != (outfolder.Changes{}) {
		t.Errorf("%+v, %v", changes, err)
	}
	entries, err := os.ReadDir(filepath.Join(folder, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(entries), "[- .fulmar."+strings.Repeat("B", 26)+" - .fulmar.yaml - x.go]"; got != want {
		t.Errorf("there is %s, want %s", got, want)
	}
}
