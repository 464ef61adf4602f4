package main

import (
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestCodeBytes_CountsFunctions(t *testing.T) {
	const printed = `  401000        120 T example.com/many.(*S0).ReadThrift
       0         30 t type:.eq.example.com/many.S0
       0       4096 D example.com/many.S0
                    U runtime.panicIndex
       0         24 R go:string."T"
`
	if got, err := codeBytes(strings.NewReader(printed)); err != nil || got != 150 {
		t.Errorf("%d bytes, %v, want 150", got, err)
	}
	for _, wrong := range []string{"", "       0         24 R a\n", "x T a\n"} {
		if got, err := codeBytes(strings.NewReader(wrong)); err == nil {
			t.Errorf("%q has %d bytes", wrong, got)
		}
	}
}

func TestReport_IsForEachStruct(t *testing.T) {
	var out strings.Builder
	err := report(&out, []figures{{name: "fulmar", compile: []time.Duration{9 * time.Second, time.Second, 2 * time.Second}, source: 40_000, code: 9_000, archive: 100_000}}, 20)
	want := "| `fulmar` | 100.0 s | 2.0 KB | 0.5 KB | 5.0 KB |\n"
	if err != nil || !strings.HasSuffix(out.String(), want) {
		t.Errorf("%s, %v, want %s", out.String(), err, want)
	}
}

func TestRun_WantsSomethingToDo(t *testing.T) {
	for _, numbers := range [][2]int{{0, 1}, {1, 0}} {
		if err := run(t.Context(), nil, numbers[0], numbers[1]); err == nil || !strings.Contains(err.Error(), "at least one") {
			t.Errorf("%v: %v", numbers, err)
		}
	}
}

func TestDefine_HasStructsOfTenFields(t *testing.T) {
	text := define(3)
	if strings.Count(text, "struct S") != 3 || strings.Count(text, "\n  10: optional S0 field_9\n") != 3 {
		t.Error(text)
	}
}
