package outfolder_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/outfolder"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func file(name, text string) emit.File {
	return emit.File{Path: name, Content: []byte(emit.Header + "a.thrift. DO NOT EDIT.\n\n" + text)}
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
		changes, err := outfolder.Write(folder, test.files)
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
