package policy

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// qualifiedName matches what can name a service or a method, as for interceptors.
var qualifiedName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*(/[A-Za-z_][A-Za-z0-9_]*)?$`)

// quotedBytesMax is how much of a text an error repeats.
const quotedBytesMax = 100

// quoted returns text as an error repeats it: with quotes, and not all of a long one.
func quoted(text string) string {
	if len(text) <= quotedBytesMax {
		return fmt.Sprintf("%q", text)
	}
	cut := quotedBytesMax
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%q... (%d bytes)", text[:cut], len(text))
}

// snake turns the name of a field into that in a document: "PerSecond" into "per_second".
func snake(name string) string {
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) {
			if i > 0 {
				out.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		out.WriteRune(r)
	}
	return out.String()
}

// meant returns a question with the name that comes nearest to one that is unknown, ""
// if none is near.
func meant(unknown string, known []string) string {
	best, least := "", 3
	plain := plainName(unknown)
	for _, name := range known {
		if d := distance(plain, plainName(name), least); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (is %q meant?)", best)
}

// plainName is what of a name counts when it is compared with others: people write
// minCalls and min-calls for min_calls.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// distance returns how many letters have to be added, removed or replaced to make b of a;
// limit and nothing exact if it is that many or more, or half of the shorter one.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j+1], row[j]) + 1
			if a[i] == b[j] {
				next = min(next, diagonal)
			} else {
				next = min(next, diagonal+1)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	if d := row[len(b)]; 2*d < min(len(a), len(b)) || d == 0 {
		return min(d, limit)
	}
	return limit
}
