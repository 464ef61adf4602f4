package grpc

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// timeoutDigits is how many a timeout may have.
const timeoutDigits = 8

// timeoutUnit returns how many nanoseconds the unit of a timeout is, 0 for none.
func timeoutUnit(unit byte) int64 {
	switch unit {
	case 'n':
		return 1
	case 'u':
		return 1e3
	case 'm':
		return 1e6
	case 'S':
		return 1e9
	case 'M':
		return 60e9
	case 'H':
		return 3600e9
	default:
		return 0
	}
}

// ParseTimeout returns the nanoseconds of a grpc-timeout: at most eight digits and a
// unit. What does not fit 63 bits is as many as fit, 292 years.
func ParseTimeout(value string) (nanoseconds int64, ok bool) {
	n := len(value) - 1
	if n < 1 || n > timeoutDigits {
		return 0, false
	}
	unit := timeoutUnit(value[n])
	if unit == 0 {
		return 0, false
	}
	amount := int64(0)
	for i := range n {
		digit := value[i] - '0'
		if digit > 9 {
			return 0, false
		}
		amount = 10*amount + int64(digit)
	}
	if amount > math.MaxInt64/unit {
		return math.MaxInt64, true
	}
	return amount * unit, true
}

// AppendTimeout appends a grpc-timeout in the smallest unit in which it has eight
// digits, rounded up: a server must not give up before its client does. A time that is
// over is 0n.
func AppendTimeout(dst []byte, nanoseconds int64) []byte {
	nanoseconds = max(nanoseconds, 0)
	const most = 100_000_000 - 1
	for _, unit := range [...]byte{'n', 'u', 'm', 'S', 'M', 'H'} {
		size := timeoutUnit(unit)
		amount := nanoseconds / size
		if nanoseconds%size != 0 {
			amount++
		}
		if amount <= most {
			return append(strconv.AppendInt(dst, amount, 10), unit)
		}
	}
	return dst // Not reached: 63 bits of nanoseconds are three million hours.
}

const upperHex = "0123456789ABCDEF"

// EncodeMessage returns a text as the value of grpc-message: what is not printable
// ASCII, and %, as %XX. Texts that are not UTF-8 are made so first.
func EncodeMessage(text string) string {
	plain := true
	for i := range len(text) {
		if !isPlain(text[i]) {
			plain = false
			break
		}
	}
	// A space at either end would be cut off, or make the field malformed.
	if plain && text == strings.Trim(text, " ") {
		return text
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	out := make([]byte, 0, 3*len(text))
	for i := range len(text) {
		c := text[i]
		if isPlain(c) && !(c == ' ' && (i == 0 || i == len(text)-1)) {
			out = append(out, c)
			continue
		}
		out = append(out, '%', upperHex[c>>4], upperHex[c&15])
	}
	return string(out)
}

func isPlain(c byte) bool { return c >= ' ' && c <= '~' && c != '%' }

// DecodeMessage returns the text of a grpc-message. What is no code stays as it is, and
// what is not UTF-8 in the end is replaced: a status is never lost for its text.
func DecodeMessage(value string) string {
	if strings.IndexByte(value, '%') >= 0 {
		out := make([]byte, 0, len(value))
		for i := 0; i < len(value); i++ {
			if value[i] == '%' && i+2 < len(value) {
				high, low := hexDigit(value[i+1]), hexDigit(value[i+2])
				if high >= 0 && low >= 0 {
					out = append(out, byte(high<<4|low))
					i += 2
					continue
				}
			}
			out = append(out, value[i])
		}
		value = string(out)
	}
	if !utf8.ValidString(value) {
		return strings.ToValidUTF8(value, "\uFFFD")
	}
	return value
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}

// IsBinary reports whether the values of a key are bytes in base64.
func IsBinary(key string) bool { return strings.HasSuffix(key, "-bin") }

// EncodeBinary returns the value of a key that ends in -bin, without padding.
func EncodeBinary(value []byte) string { return base64.RawStdEncoding.EncodeToString(value) }

// BinarySeparator is between values of such a key that somebody on the way has joined: they are
// split before they are decoded (PROTOCOL-HTTP2, Custom-Metadata).
const BinarySeparator = ","

// DecodeBinary returns the bytes of one such value, with padding or without.
func DecodeBinary(value string) ([]byte, bool) {
	if strings.ContainsAny(value, "\r\n") {
		return nil, false // Package base64 would pass them over.
	}
	encoding := base64.RawStdEncoding
	if len(value)%4 == 0 {
		encoding = base64.StdEncoding
	}
	b, err := encoding.DecodeString(value)
	return b, err == nil
}
