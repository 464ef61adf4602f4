package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestResults_WrittenIsRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "new", "demo.json")
	want := fixture()
	if err := want.Write(name); err != nil {
		t.Fatal(err)
	}
	got, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, wrote %+v", got, want)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	for _, c := range want.Cases {
		runs += len(c.Runs)
	}
	if lines := bytes.Count(content, []byte("\n{\"round\":")); lines != runs {
		t.Errorf("%d runs begin a line, want each of the %d", lines, runs)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*.part")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestReadResults_RefusesWhatCannotBeTrue(t *testing.T) {
	written := func(change func(*Results)) string {
		r := fixture()
		change(r)
		name := filepath.Join(t.TempDir(), "r.json")
		if err := r.Write(name); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	good := written(func(*Results) {})
	if _, err := ReadResults(strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"empty":             "",
		"no JSON":           "results",
		"half":              good[:len(good)/2],
		"two":               good + good,
		"unknown field":     strings.Replace(good, `"suite"`, `"suit"`, 1),
		"another format":    written(func(r *Results) { r.Format = 99 }),
		"no suite":          written(func(r *Results) { r.Suite = "" }),
		"terminal codes":    written(func(r *Results) { r.Cases[0].Name = "\x1b[2J" }),
		"another round":     written(func(r *Results) { r.Cases[0].Runs[0].Round = -1 }),
		"late round":        written(func(r *Results) { r.Cases[0].Runs[0].Round = roundsMax }),
		"nobody's run":      written(func(r *Results) { r.Cases[0].Runs[0].Contestant = "" }),
		"negative distance": written(func(r *Results) { r.Cases[0].Runs[0].DistanceNS = -1 }),
		"negative others":   written(func(r *Results) { r.Cases[0].Runs[0].Others = -1 }),
		"impossible run":    written(func(r *Results) { r.Cases[0].Runs[0].ServerCPU = -1 }),
		"odd pair":          written(func(r *Results) { r.Cases[0].Pairs[0].Peer = "a\nb" }),
		"odd figure":        written(func(r *Results) { r.Cases[3].Published["ours"] = "\x1b[2J" }),
		"figure of nobody":  written(func(r *Results) { r.Cases[3].Published[""] = "1" }),
		"odd operation":     written(func(r *Results) { r.Cases[3].Runs[0].Operation.Nanoseconds = -1 }),
		"no settings":       written(func(r *Results) { r.Settings = Settings{} }),
		"too many cases":    written(func(r *Results) { r.Cases = make([]CaseResult, casesMax+1) }),
		"too many pairs":    written(func(r *Results) { r.Cases[0].Pairs = make([]Pair, casesMax+1) }),
	} {
		if _, err := ReadResults(strings.NewReader(content)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("a file that is not there was read")
	}
}

// Whatever is read can be compared and printed.
func FuzzReadResults(f *testing.F) {
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := ReadResults(bytes.NewReader(content))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := r.Print(&out); err != nil {
			t.Error(err)
		}
		_ = r.allLines()
		_ = Compare(&out, r, r)
	})
}
