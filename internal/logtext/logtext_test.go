package logtext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/logtext"
)

// nested prints structs that hold each other, levels deep.
func nested(p *logtext.Printer, levels int) {
	if levels == 0 || !p.Begin() {
		return
	}
	p.Label("inner", true)
	nested(p, levels-1)
	p.Label("n", false)
	p.Int(int64(levels))
	p.End()
}

func TestPrinter_Bounds(t *testing.T) {
	numbers := func(p *logtext.Printer, n int) {
		p.Elements("[", n, "]", func(i int) { p.Int(int64(i)) })
	}
	for name, test := range map[string]struct {
		print func(p *logtext.Printer)
		want  string
	}{
		"nothing":  {func(p *logtext.Printer) { p.Named("Empty", func() { p.Begin(); p.End() }) }, "Empty"},
		"one":      {func(p *logtext.Printer) { p.Named("One", func() { nested(p, 1) }) }, "One(inner: , n: 1)"},
		"scalars":  {func(p *logtext.Printer) { p.Bool(true); p.Float(0.5); p.Int(-1); p.Quote("a\n", 2) }, `true0.5-1"a\n"`},
		"too deep": {func(p *logtext.Printer) { nested(p, limits.TextDepth+5) }, strings.Repeat("(inner: ", limits.TextDepth) + "(...), n: 6)"},
		"none":     {func(p *logtext.Printer) { numbers(p, 0) }, "[]"},
		"too many": {func(p *logtext.Printer) { numbers(p, limits.TextElements+2) }, ", 31, ... 2 more]"},
		"a long text": {
			func(p *logtext.Printer) { p.Quote(strings.Repeat("é", limits.TextStringBytes), 5000) }, "é\"... (5000 bytes)",
		},
		"cut within a character": {
			func(p *logtext.Printer) { p.Quote("x"+strings.Repeat("é", limits.TextStringBytes), 5000) }, "é\"... (5000 bytes)",
		},
		"entries": {
			func(p *logtext.Printer) {
				entries := []logtext.Entry[int64]{{Key: "b", Value: 2}, {Key: "a", Value: 1}}
				logtext.Entries(p, entries, len(entries), p.Int)
			}, "{a: 1, b: 2}",
		},
		"an inner one": {
			func(p *logtext.Printer) {
				p.Begin()
				inner := p.Inner()
				nested(&inner, limits.TextDepth)
				p.Print(inner.Whole())
			}, "(" + strings.Repeat("(inner: ", limits.TextDepth-1) + "(...), n: 2)",
		},
	} {
		var p logtext.Printer
		test.print(&p)
		if got := p.String(); !strings.Contains(got, test.want) || p.Full() {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestPrinter_StopsWhenItIsFull asks for no more elements than a text has room for.
func TestPrinter_StopsWhenItIsFull(t *testing.T) {
	for shift := range 4 {
		var p logtext.Printer
		p.Print(strings.Repeat("x", shift))
		asked := 0
		p.Elements("[", limits.TextElements, "]", func(int) {
			asked++
			p.Quote(strings.Repeat("\U0001f426", 200), 800)
		})
		text := p.String()
		if asked > limits.TextBytes/800+1 || !p.Full() || !strings.HasSuffix(text, "...") || strings.Contains(text, "\ufffd") || len(text) > limits.TextBytes+len("...") {
			t.Errorf("%d: %d elements, %d bytes: %s", shift, asked, len(text), text)
		}
	}
	var p logtext.Printer
	p.Elements("[", 3, "]", func(i int) {
		p.Print(fmt.Sprint(i))
		p.Stop()
	})
	if got := p.String(); got != "[0" || !p.Full() {
		t.Errorf("stopped: %s", got)
	}
}

// TestPrinter_AllocatesItsTextOnly has a budget of the growth of the text, and of String.
func TestPrinter_AllocatesItsTextOnly(t *testing.T) {
	least := 1e9
	for range 5 {
		least = min(least, testing.AllocsPerRun(20, func() {
			var p logtext.Printer
			p.Named("Order", func() {
				p.Begin()
				p.Label("id", true)
				p.Elements("[", 4, "]", func(i int) { p.Int(int64(i)) })
				p.End()
			})
			_ = p.String()
		}))
	}
	if least > 4 {
		t.Errorf("it allocates %v times", least)
	}
}
