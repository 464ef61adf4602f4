package emit

import (
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// namespace is a set of identifiers that are taken.
type namespace struct {
	taken map[string]bool
	// variants is how many variants of a name were tried, by the kind of thing
	// that it is for.
	variants map[[2]string]int
	// underscores: the variants of a name are name_, name__ and so on, as Kitex
	// has them.
	underscores bool
}

func newNamespace(taken ...string) *namespace {
	n := &namespace{taken: map[string]bool{}, variants: map[[2]string]int{}}
	n.reserve(taken...)
	return n
}

// reserve takes the names, whether they are free or not.
func (n *namespace) reserve(names ...string) {
	for _, name := range names {
		n.taken[name] = true
	}
}

// reserveAll takes the names that are taken in other.
func (n *namespace) reserveAll(other *namespace) { maps.Copy(n.taken, other.taken) }

// free says that none of the names is taken.
func (n *namespace) free(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return n.taken[name] })
}

// claim takes name, or if that is taken a variant of it. Those who come first
// keep their names, so a definition that grows at its end renames nothing.
func (n *namespace) claim(name string) string {
	claimed := n.choose("identifier", name, func(variant string) bool { return n.free(variant) })
	n.reserve(claimed)
	return claimed
}

// choose returns the first of name, name_, name_2, name_3 and so on that fits
// something of this kind. It goes on where it stopped when it was last asked:
// otherwise a definition with very many spellings of a name would take for
// ever.
func (n *namespace) choose(kind, name string, fits func(variant string) bool) string {
	for tried := [2]string{kind, name}; ; n.variants[tried]++ {
		variant := name
		switch number := n.variants[tried]; number {
		case 0:
		case 1:
			variant += "_"
		case 2, 3, 4, 5, 6, 7, 8:
			if n.underscores {
				variant += strings.Repeat("_", number)
				break
			}
			fallthrough
		default:
			variant += "_" + strconv.Itoa(number)
		}
		if fits(variant) {
			return variant
		}
	}
}

// claimFile turns the base name of a definition into that of its Go files.
// The suffixes added later keep it from ending in what Go takes for a test or a
// platform; names that start with "_" or "." would be ignored.
func (n *namespace) claimFile(base string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (isLetter(byte(r)) || isDigit(byte(r))) {
			return r
		}
		return '_'
	}, base)
	name = strings.TrimLeft(name, "_")
	name = name[:min(len(name), limits.GoFileNameBytes)]
	if name == "" {
		name = "idl"
	}
	// Some file systems do not tell upper and lower case apart.
	return n.claim(strings.ToLower(name))
}

// reservedWord says that name is a keyword or a predeclared identifier of Go.
// The latter could be declared again, but not in code that also uses them.
func reservedWord(name string) bool {
	return token.IsKeyword(name) || types.Universe.Lookup(name) != nil || name == "_"
}

// unexported turns an exported Go name into one that starts with a small
// letter: "URLShortener" becomes "urlShortener".
func unexported(name string) string {
	upper := 0
	for upper < len(name) && isUpper(name[upper]) {
		upper++
	}
	if upper > 1 && upper < len(name) && isLetter(name[upper]) {
		upper--
	}
	return strings.ToLower(name[:upper]) + name[upper:]
}
