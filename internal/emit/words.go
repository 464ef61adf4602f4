package emit

import "strings"

// initialisms are the words that Go writes in one case. The list is that of the
// Go project's code review comments as golint had it; a longer one would change
// the names in code that exists.
var initialisms = func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(`acl api ascii cpu css dns eof guid html http https id ip json lhs qps ram
		rhs rpc sla smtp sql ssh tcp tls ttl udp ui uid uri url utf8 uuid vm xml xmpp xsrf xss`) {
		words[word] = true
	}
	return words
}()

// spelling is how names are written.
type spelling struct {
	// plain says that initialisms are words like others.
	plain bool
	// kitex says that exported names are as Kitex has them.
	kitex bool
}

// exportedName turns a name of a definition into an exported Go identifier:
// "order_id" and "orderId" become "OrderID", "MAX_SIZE" becomes "MaxSize".
func (s spelling) exportedName(name string) string {
	if s.kitex {
		return kitexName(name)
	}
	var out strings.Builder
	for _, word := range splitWords(name) {
		writeWord(&out, s.capitalize(word))
	}
	if out.Len() == 0 || isDigit(out.String()[0]) {
		return "X" + out.String()
	}
	return out.String()
}

// localName turns a name of a definition into an identifier that starts with a
// lower case letter: "order_id" becomes "orderID", "URLPath" becomes "urlPath".
func (s spelling) localName(name string) string {
	var out strings.Builder
	for i, word := range splitWords(name) {
		switch {
		case i > 0:
			word = s.capitalize(word)
		case s.isInitialism(strings.ToLower(word)) || word == strings.ToUpper(word):
			word = strings.ToLower(word)
		default:
			word = lowerFirst(word)
		}
		writeWord(&out, word)
	}
	if out.Len() == 0 || isDigit(out.String()[0]) {
		return "x" + out.String()
	}
	return out.String()
}

// writeWord keeps numbers apart: "v1_2" is not "v12".
func writeWord(out *strings.Builder, word string) {
	if before := out.String(); before != "" && isDigit(before[len(before)-1]) && isDigit(word[0]) {
		out.WriteByte('_')
	}
	out.WriteString(word)
}

// splitWords cuts a name at everything that is not an ASCII letter or digit and
// where a capital letter starts a word. A name in capital letters with
// underscores is returned in small letters.
func splitWords(name string) []string {
	var words []string
	start := -1
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case !isLetter(c) && !isDigit(c):
			if start >= 0 {
				words = append(words, name[start:i])
			}
			start = -1
		case start < 0:
			start = i
		case startsWord(name, i):
			words = append(words, name[start:i])
			start = i
		}
	}
	if start >= 0 {
		words = append(words, name[start:])
	}
	if strings.Contains(name, "_") && name == strings.ToUpper(name) {
		for i := range words {
			words[i] = strings.ToLower(words[i])
		}
	}
	return words
}

// startsWord says that a word starts at i, which is within a run of letters and
// digits: "orderId" at I, "HTTPServer" at S.
func startsWord(name string, i int) bool {
	if !isUpper(name[i]) {
		return false
	}
	if !isUpper(name[i-1]) {
		return true
	}
	return i+1 < len(name) && isLetter(name[i+1]) && !isUpper(name[i+1])
}

func (s spelling) isInitialism(lower string) bool { return !s.plain && initialisms[lower] }

func (s spelling) capitalize(word string) string {
	lower := strings.ToLower(word)
	if s.isInitialism(lower) {
		return strings.ToUpper(word)
	}
	if singular, plural := strings.CutSuffix(lower, "s"); plural && s.isInitialism(singular) {
		return strings.ToUpper(singular) + "s"
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

func lowerFirst(word string) string { return strings.ToLower(word[:1]) + word[1:] }

func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool { return isUpper(c) || 'a' <= c && c <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
