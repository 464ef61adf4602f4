package http2

import (
	"math"
	"strconv"
)

// part is which header block of a message a list of fields is.
type part uint8

const (
	partRequest part = iota
	partResponse
	partTrailers
)

// message is what the fields of a message say to HTTP/2 itself.
type message struct {
	// length is what content-length says, -1 without one.
	length int64
	// status is that of a response.
	status int
}

// checkFields returns why a list of fields is malformed (RFC 9113, 8.1.1), "" if it
// is not. What it means to HTTP, and to gRPC, is not looked at. Of a list that is cut, what
// was left out may be what is missing.
func checkFields(fields []Field, p part, cut bool) (message, string) {
	m := message{length: -1}
	seen := pseudoFields(0)
	regular := false
	for i := range fields {
		f := &fields[i]
		if f.Name != "" && f.Name[0] == ':' {
			if regular {
				return m, "pseudo-header field behind others"
			}
			if problem := m.pseudo(f, p, &seen); problem != "" {
				return m, problem
			}
			continue
		}
		regular = true
		if problem := m.regular(f); problem != "" {
			return m, problem
		}
	}
	switch {
	case cut:
	case p == partRequest && seen&(hasMethod|hasScheme|hasPath) != hasMethod|hasScheme|hasPath:
		// RFC 9113, 8.3.1. CONNECT, which has one only, is not supported.
		return m, "request without :method, :scheme or :path"
	case p == partResponse && seen != hasStatus:
		return m, "response without :status"
	}
	return m, ""
}

// pseudoFields is a set of pseudo-header fields.
type pseudoFields uint8

const (
	hasMethod pseudoFields = 1 << iota
	hasScheme
	hasPath
	hasAuthority
	hasStatus
)

// pseudo checks a pseudo-header field: known, where it belongs, once (RFC 9113, 8.3).
func (m *message) pseudo(f *Field, p part, seen *pseudoFields) string {
	var bit pseudoFields
	switch f.Name {
	case ":method":
		bit = hasMethod
	case ":scheme":
		bit = hasScheme
	case ":path":
		bit = hasPath
	case ":authority":
		bit = hasAuthority
	case ":status":
		bit = hasStatus
	}
	if p == partTrailers || bit == 0 || (bit == hasStatus) != (p == partResponse) || *seen&bit != 0 {
		return "pseudo-header field that does not belong there"
	}
	*seen |= bit
	if !validValue(f.Value) {
		return "character that a header field cannot have"
	}
	switch {
	case bit == hasStatus:
		status, err := strconv.ParseUint(f.Value, 10, 16)
		if len(f.Value) != 3 || err != nil || status < 100 || status == 101 {
			// RFC 9113, 8.6: 101 is not of HTTP/2.
			return "status that is none"
		}
		m.status = int(status)
	case bit == hasPath && (f.Value == "" || f.Value[0] != '/') && f.Value != "*":
		// Rules for paths must see what the handler sees.
		return "path without a slash in front"
	case bit != hasAuthority && f.Value == "":
		return "empty pseudo-header field"
	}
	return ""
}

// regular checks any other field (RFC 9113, 8.2).
func (m *message) regular(f *Field) string {
	if !validName(f.Name) || !validValue(f.Value) {
		return "character that a header field cannot have"
	}
	switch f.Name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return "header field of a connection"
	case "te":
		if f.Value != "trailers" {
			return "te that is not trailers"
		}
	case "content-length":
		length, err := strconv.ParseUint(f.Value, 10, 64)
		if err != nil || length > math.MaxInt64 || m.length >= 0 && m.length != int64(length) {
			return "content-length that is none"
		}
		m.length = int64(length)
	}
	return ""
}

// validName reports whether a name has only characters of a token (RFC 9110, 5.6.2)
// and no upper case.
func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		case c == '!', c == '#', c == '$', c == '%', c == '&', c == '\'', c == '*', c == '+', c == '^', c == '`', c == '|', c == '~':
		default:
			return false
		}
	}
	return name != ""
}

// validValue reports whether a value has no control characters that end it, nor white
// space around it (RFC 9113, 8.2.1).
func validValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	n := len(value)
	return n == 0 || value[0] != ' ' && value[0] != '\t' && value[n-1] != ' ' && value[n-1] != '\t'
}
