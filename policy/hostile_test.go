package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/policy"
)

// hostile are documents of a length that make work, or text of problems.
func hostile(length int) map[string]string {
	fill := func(before string, part func(i int) string, after string) string {
		var text strings.Builder
		text.WriteString(before)
		for i := 0; text.Len() < length-1000; i++ {
			if i > 0 {
				text.WriteByte(',')
			}
			text.WriteString(part(i))
		}
		return text.String() + after
	}
	nines := strings.Repeat("9", length-100)
	codes := strings.Repeat(`"unavailablx",`, 31) + `"x"`
	return map[string]string{
		"unknown fields":  fill(`{"client":{"retry":{`, func(i int) string { return fmt.Sprintf(`"attempt%d":0`, i) }, `}}}`),
		"unknown codes":   fill(`{"client":{"retry":{"codes":[`, func(int) string { return `"unavailablx"` }, `]}}}`),
		"codes of many":   fill(`{"client":{"methods":{`, func(i int) string { return fmt.Sprintf(`"M%d":{"retry":{"codes":[%s]}}`, i, codes) }, `}}}`),
		"one field twice": fill(`{`, func(int) string { return `"client":0` }, `}`),
		"lists":           fill(`{"client":[`, func(int) string { return `[]` }, `]}`),
		"many methods":    fill(`{"client":{"methods":{`, func(i int) string { return fmt.Sprintf(`"M%d":{}`, i) }, `}}}`),
		"wrong methods":   fill(`{"server":{"methods":{`, func(i int) string { return fmt.Sprintf(`"%d":0`, i%900) }, `}}}`),
		"a long name":     `{"` + nines + `":0}`,
		"a long number":   `{"client":{"retry":{"attempts":` + nines + `}}}`,
		"a long exponent": `{"client":{"retry":{"attempts":1e` + nines + `}}}`,
		"a long duration": `{"client":{"timeout":"` + nines + `"}}`,
	}
}

// However bad a document is, what is said about it can be read. How long that takes is for
// the benchmark: half a second at most, on a machine that others use.
func TestParseJSON_StandsHostileDocuments(t *testing.T) {
	for name, text := range hostile(limits.PolicyBytes / 8) {
		if _, err := policy.ParseJSON([]byte(text)); err == nil || len(err.Error()) > 64<<10 {
			t.Errorf("%s, %d bytes: the error has %d bytes", name, len(text), len(fmt.Sprint(err)))
		}
	}
}

func BenchmarkParseJSON_Hostile(b *testing.B) {
	for name, text := range hostile(limits.PolicyBytes) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := policy.ParseJSON([]byte(text)); err == nil {
					b.Fatal("it was accepted")
				}
			}
		})
	}
}
