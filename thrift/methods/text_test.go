package methods_test

import (
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/thrift"
	"github.com/fulmar-rpc/fulmar/thrift/methods"
)

// node is a struct as the generator makes them.
type node struct {
	Name   string
	Labels []string
}

// odd is no generated struct: Text takes what it gets.
type odd struct {
	Name    string `json:"-"`
	hidden  func()
	Numbers []*int
	Any     any
	Inner   struct{ A, B thrift.Opt[bool] }
}

func TestText_TakesWhatItGets(t *testing.T) {
	var none *node
	for want, value := range map[string]any{
		"nil":                    nil,
		"methods_test.node(nil)": none,
		"int":                    5,
		"methods_test.odd":       odd{},
		"*int":                   new(int),
		`methods_test.odd(Name: "a", Numbers: [nil, 0], Any: <nil>, Inner: (B: true))`: &odd{
			Name: "a", hidden: func() {}, Numbers: []*int{nil, new(int)}, Inner: struct{ A, B thrift.Opt[bool] }{B: thrift.Some(true)},
		},
	} {
		if got := methods.Text(value); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestText_CutsAtCharacters has texts that end at every place within a character.
func TestText_CutsAtCharacters(t *testing.T) {
	for shift := range 4 {
		text := methods.Text(&node{Name: strings.Repeat("x", shift) + strings.Repeat("\U0001f426", 300)})
		if strings.Contains(text, `\x`) || strings.Contains(text, "\ufffd") || !strings.Contains(text, `\U0001f426"... (12`) && !strings.Contains(text, "\U0001f426\"... (12") {
			t.Errorf("%d: %s", shift, text)
		}
		labels := make([]string, 20)
		for i := range labels {
			labels[i] = strings.Repeat("x", shift) + strings.Repeat("é", 200)
		}
		text = methods.Text(&node{Labels: labels})
		if !strings.HasSuffix(text, "...") || strings.Contains(text, "\ufffd") || len(text) > 4<<10+3 || len(text) < 4<<10-1 {
			t.Errorf("%d: %d bytes: %s", shift, len(text), text)
		}
	}
	broken := methods.Text(&node{Name: strings.Repeat("\x80", 5000)})
	if !strings.Contains(broken, `\x80`) || len(broken) > 4<<10+3 {
		t.Error(broken)
	}
}
