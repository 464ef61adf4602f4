package archtest

import (
	"fmt"
	"strings"
	"testing"
)

func TestLimits_ArePrinted(t *testing.T) {
	got, err := printLimits(`package limits

import "time"

// Messages of peers.
const (
	// MessageBytes is long.
	// And that is why.
	MessageBytes = 16 << 20
	ShortBytes   = 100

	// Depth has no unit.
	Depth = 64

	// BytesPerSecond and LinesPerSecond are rates.
	BytesPerSecond = 64 << 10
	LinesPerSecond = 1000000
)

// Clients.
const (
	// CallTimeout is a duration.
	CallTimeout = 5 * time.Second
	IdleTimeout time.Duration = 10 * CallTimeout * 12
	RetryMin = 20 * time.Millisecond
)
`)
	if err != nil {
		t.Fatal(err)
	}
	want := `
### Messages of peers

| limit | default | reason |
|---|---|---|
| ` + "`MessageBytes`" + ` | 16 MiB | MessageBytes is long. And that is why. |
| ` + "`ShortBytes`" + ` | 100 B | See above. |
| ` + "`Depth`" + ` | 64 | Depth has no unit. |
| ` + "`BytesPerSecond`" + ` | 64 KiB/s | BytesPerSecond and LinesPerSecond are rates. |
| ` + "`LinesPerSecond`" + ` | 1,000,000/s | See above. |

### Clients

| limit | default | reason |
|---|---|---|
| ` + "`CallTimeout`" + ` | 5 s | CallTimeout is a duration. |
| ` + "`IdleTimeout`" + ` | 10 min | See above. |
| ` + "`RetryMin`" + ` | 20 ms | See above. |

`
	if got != want {
		t.Errorf("printed %s, in:\n%s", firstDifference(want, got), got)
	}
}

func TestLimits_RefuseWhatTheyCannotPrint(t *testing.T) {
	for _, source := range []string{
		"package limits\n// Group.\nconst Ratio = 0.5\n",
		"package limits\n// Group.\nconst Unknown = other.Value\n",
		"package limits\nfunc {",
	} {
		if got, err := printLimits(source); err == nil {
			t.Errorf("%q printed as %q", source, got)
		}
	}
	if _, err := between("no marks", limitsBegin, "", limitsEnd); err == nil || !strings.Contains(err.Error(), "marks") {
		t.Errorf("a document without marks: %v", err)
	}
}

func TestLimitFields_AreFound(t *testing.T) {
	source := sources{
		"config.go":    "type ServerConfig struct {\n\tMaxA, MaxB int\n\tWait time.Duration\n\tName string\n}\ntype Config int",
		"pool/p.go":    "type PoolConfig struct{ Size int }",
		"call_test.go": "type TestConfig struct{ Size int }",
	}
	got := limitFields(mustLoad(t, source.tree()).goFiles)
	if want := "[ServerConfig.MaxA ServerConfig.MaxB ServerConfig.Wait]"; fmt.Sprint(got) != want {
		t.Errorf("found %v, want %v", got, want)
	}
}

func TestLimitFields_HaveRows(t *testing.T) {
	const document = "| `Wait`, option `W` | client | `Other` |\n| `Wait` | server, client | 90 %, less `First` and `Last` |\n| `Size` | server | none |\n"
	tests := map[limitField]string{
		{config: "ServerConfig", name: "Wait"}: "Last",
		{config: "ClientConfig", name: "Wait"}: "Other",
		{config: "ServerConfig", name: "Size"}: "",
		{config: "ServerConfig", name: "Gone"}: "",
		{config: "PoolConfig", name: "Wait"}:   "",
	}
	for field, want := range tests {
		if got := limitOfField(document, field); got != want {
			t.Errorf("the row of %v names %q, want %q", field, got, want)
		}
	}
}

func TestQuotes_AreRewritten(t *testing.T) {
	values := map[string]string{"MessageBytes": "32 MiB", "CallTimeout": "7 s", "Rate": "1,000/s", "Depth": "64"}
	tests := map[string]string{
		"at most 16 MiB (MessageBytes)":            "at most 32 MiB (MessageBytes)",
		"16 MiB (`MessageBytes`) and 2 (`Depth`).": "32 MiB (`MessageBytes`) and 64 (`Depth`).",
		"\t// Default 5\n\t// s (CallTimeout).":    "\t// Default 7 s (CallTimeout).",
		"\t// Default 5 s\n\t// (CallTimeout).":    "\t// Default 7 s\n\t// (CallTimeout).",
		"10,000 (Depth)":                           "64 (Depth)",
		"5/s (Rate)":                               "1,000/s (Rate)",
		"7 seconds (CallTimeout)":                  "7 seconds (CallTimeout)",
		"16 MiB (Unknown), 5 s, func F(Depth)":     "16 MiB (Unknown), 5 s, func F(Depth)",
	}
	for text, want := range tests {
		if got, _ := rewriteQuotes(text, values); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if _, quotes := rewriteQuotes("32 MiB (MessageBytes), 7 s (CallTimeout), 1 (Unknown)", values); quotes != 2 {
		t.Errorf("%d quotes were counted, want 2", quotes)
	}
}
