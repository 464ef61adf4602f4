package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

func text(s string) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s
}

// stringMap and intMap return blocks; keys and values alternate.
func stringMap(pairs ...string) string {
	block := "\x01" + string(binary.BigEndian.AppendUint16(nil, uint16(len(pairs)/2)))
	for _, s := range pairs {
		block += text(s)
	}
	return block
}

func intMap(key uint16, value string, more ...string) string {
	block := "\x10" + string(binary.BigEndian.AppendUint16(nil, uint16(1+len(more))))
	block += string(binary.BigEndian.AppendUint16(nil, key)) + text(value)
	for i, value := range more {
		block += string(binary.BigEndian.AppendUint16(nil, key+uint16(i)+1)) + text(value)
	}
	return block
}

func token(value string) string { return "\x11" + text(value) }

// listing is everything that an Info says when it is asked for all pairs.
func listing(info wire.Info) string {
	var out strings.Builder
	for key, value := range info.Strings() {
		fmt.Fprintf(&out, "%q: %q\n", key, value)
	}
	for key, value := range info.Ints() {
		fmt.Fprintf(&out, "%d: %q\n", key, value)
	}
	return out.String()
}

func parse(t *testing.T, blocks string) wire.Info {
	t.Helper()
	info, err := wire.ParseInfo([]byte(blocks))
	if err != nil {
		t.Fatalf("ParseInfo(% x): %v", blocks, err)
	}
	return info
}

// TestParseInfo_AnyOrder puts the same blocks into every order, with and without
// padding between them: the same pairs are found.
func TestParseInfo_AnyOrder(t *testing.T) {
	blocks := []string{
		stringMap("isn", "Orders", "", "no key", "no value", ""),
		intMap(wire.KeyFromService, "client"),
		intMap(wire.KeyToMethod, "place", "test"),
		token("secret"),
		stringMap(),
	}
	orders := 0
	permute(blocks, func(order []string) {
		for _, padding := range []string{"", "\x00", strings.Repeat("\x00", 7), strings.Repeat("\x00", 8), strings.Repeat("\x00", 29)} {
			orders++
			info := parse(t, padding+strings.Join(order, padding)+padding)
			wants := map[string]string{"isn": "Orders", "": "no key", "no value": "", wire.TokenKey: "secret"}
			for key, want := range wants {
				if value, ok := info.String(key); !ok || string(value) != want {
					t.Fatalf("%q: String(%q) = %q, %v; want %q", order, key, value, ok, want)
				}
			}
			ints := map[uint16]string{wire.KeyFromService: "client", wire.KeyToMethod: "place", wire.KeyEnvironment: "test"}
			for key, want := range ints {
				if value, ok := info.Int(key); !ok || string(value) != want {
					t.Fatalf("%q: Int(%d) = %q, %v; want %q", order, key, value, ok, want)
				}
			}
			if got, ok := info.Token(); !ok || string(got) != "secret" {
				t.Fatalf("%q: Token = %q, %v", order, got, ok)
			}
			if info.Len() != len(wants)+len(ints) {
				t.Fatalf("%q: Len = %d, want %d", order, info.Len(), len(wants)+len(ints))
			}
		}
	})
	if orders != 5*120 {
		t.Errorf("%d orders were tried, want 600", orders)
	}
}

// permute calls visit with every order of all.
func permute(all []string, visit func([]string)) {
	var extend func(chosen, rest []string)
	extend = func(chosen, rest []string) {
		if len(rest) == 0 {
			visit(chosen)
		}
		for i := range rest {
			extend(append(slices.Clone(chosen), rest[i]), slices.Delete(slices.Clone(rest), i, i+1))
		}
	}
	extend(nil, all)
}

func TestInfo_TheLastOfARepeatedKeyCounts(t *testing.T) {
	for name, blocks := range map[string]string{
		"in a block":              stringMap("k", "first", "k", "last"),
		"in two blocks":           stringMap("k", "first", "k", "second") + intMap(5, "") + stringMap("k", "last"),
		"with others around":      stringMap("a", "1", "k", "first", "b", "2") + stringMap("c", "3", "k", "last", "d", "4"),
		"first is longer":         stringMap("k", strings.Repeat("x", 300), "k", "last"),
		"after keys that look so": stringMap("k", "", "kk", "other", "K", "other", "k", "last", "", "k"),
	} {
		if value, ok := parse(t, blocks).String("k"); !ok || string(value) != "last" {
			t.Errorf("%s: String = %q, %v; want \"last\"", name, value, ok)
		}
	}
	ints := parse(t, intMap(7, "first", "eight")+stringMap("k", "v")+intMap(6, "six", "last"))
	if value, ok := ints.Int(7); !ok || string(value) != "last" {
		t.Errorf("Int = %q, %v; want \"last\"", value, ok)
	}
	if want := "\"k\": \"v\"\n7: \"first\"\n8: \"eight\"\n6: \"six\"\n7: \"last\"\n"; listing(ints) != want {
		t.Errorf("the pairs are\n%swant them with repeats, as they came:\n%s", listing(ints), want)
	}
}

// TestInfo_TokenIsAStringKey: Kitex surfaces the token as a string pair and
// writes that pair as a token, so both are one thing, and the last counts.
func TestInfo_TokenIsAStringKey(t *testing.T) {
	for name, blocks := range map[string]string{
		"a token":      token("last"),
		"a pair":       stringMap(wire.TokenKey, "last"),
		"two tokens":   token("first") + token("last"),
		"a pair last":  token("first") + stringMap("a", "b", wire.TokenKey, "last"),
		"a token last": stringMap(wire.TokenKey, "first") + token("last"),
	} {
		info := parse(t, blocks)
		if value, ok := info.Token(); !ok || string(value) != "last" {
			t.Errorf("%s: Token = %q, %v", name, value, ok)
		}
		seen := ""
		for key, value := range info.Strings() {
			if string(key) == wire.TokenKey {
				seen = string(value)
			}
		}
		if seen != "last" {
			t.Errorf("%s: the last of Strings is %q", name, seen)
		}
	}
	if value, ok := parse(t, token("")).Token(); !ok || len(value) != 0 {
		t.Errorf("an empty token: %q, %v; want it found", value, ok)
	}
}

func TestInfo_Empty(t *testing.T) {
	for name, info := range map[string]wire.Info{
		"zero value":    {},
		"no bytes":      parse(t, ""),
		"padding":       parse(t, strings.Repeat("\x00", 100)),
		"empty maps":    parse(t, stringMap()+"\x10\x00\x00\x00"),
		"other keys":    parse(t, intMap(2, "b")),
		"other strings": parse(t, stringMap("b", "a")),
	} {
		if value, ok := info.String("a"); ok || value != nil {
			t.Errorf("%s: String = %q, %v", name, value, ok)
		}
		if value, ok := info.Int(1); ok || value != nil {
			t.Errorf("%s: Int = %q, %v", name, value, ok)
		}
		if value, ok := info.Token(); ok || value != nil {
			t.Errorf("%s: Token = %q, %v", name, value, ok)
		}
	}
	if n := len(listing(wire.Info{})); n != 0 {
		t.Errorf("the zero value lists %d bytes", n)
	}
}

func TestInfo_RangesCanBeLeft(t *testing.T) {
	info := parse(t, stringMap("a", "1", "b", "2")+token("3")+intMap(1, "4", "5"))
	count := 0
	for range info.Strings() {
		count++
		break
	}
	for range info.Ints() {
		count++
		break
	}
	if count != 2 {
		t.Errorf("%d pairs were seen by two loops that stop at the first", count)
	}
}

// TestInfo_CopyIsIndependent: what a call keeps must not change when the buffer
// of the connection is used again.
func TestInfo_CopyIsIndependent(t *testing.T) {
	b := []byte("\x00" + stringMap("a", "1") + intMap(1, "2") + token("3") + strings.Repeat("\x00", 50))
	info, err := wire.ParseInfo(b)
	if err != nil {
		t.Fatal(err)
	}
	want := listing(info)
	if info.Size() != len(b)-50 {
		t.Errorf("Size = %d of %d bytes: padding at the end is kept", info.Size(), len(b))
	}
	duplicate := info.CopyTo(make([]byte, info.Size()+3))
	clear(b)
	if got := listing(duplicate); got != want || duplicate.Len() != 3 || duplicate.Size() != info.Size() {
		t.Errorf("the copy has %d pairs in %d bytes:\n%swant\n%s", duplicate.Len(), duplicate.Size(), got, want)
	}
}

func TestParseInfo_Refuses(t *testing.T) {
	many := func(n int) string {
		var pairs []string
		for range n {
			pairs = append(pairs, "", "")
		}
		return stringMap(pairs...)
	}
	for name, test := range map[string]struct {
		blocks string
		kind   thriftwire.Kind
		offset int
		text   string
	}{
		"unknown block":         {"\x00\x02", thriftwire.Malformed, 1, "info block of unknown id 0x02"},
		"block of Thrift":       {stringMap("a", "b") + "\x0b", thriftwire.Malformed, 9, "unknown id 0x0b"},
		"no count":              {"\x01", thriftwire.Truncated, 1, "ends inside the count of a map (0 bytes left)"},
		"half a count":          {"\x10\x00", thriftwire.Truncated, 1, "ends inside the count of a map (1 bytes left)"},
		"no key":                {"\x01\x00\x01", thriftwire.Truncated, 3, "ends inside a string key (0 bytes left)"},
		"half a key":            {"\x01\x00\x01\x00\x02a", thriftwire.Truncated, 3, "ends inside a string key (3 bytes left)"},
		"no value":              {"\x01\x00\x01\x00\x01a", thriftwire.Truncated, 6, "ends inside a value (0 bytes left)"},
		"half an int key":       {"\x10\x00\x01\x00", thriftwire.Truncated, 3, "ends inside an int key (1 bytes left)"},
		"long value":            {"\x10\x00\x01\x00\x01\xff\xffabc", thriftwire.Truncated, 5, "ends inside a value (5 bytes left)"},
		"no token":              {"\x11", thriftwire.Truncated, 1, "ends inside a value (0 bytes left)"},
		"second pair missing":   {"\x01\x00\x02" + text("a") + text("b"), thriftwire.Truncated, 9, "ends inside a string key"},
		"too many in one block": {many(limits.HeaderPairs + 1), thriftwire.LimitExceeded, 3, "at least 513 key-value pairs in TTHeader (limit 512)"},
		"declared too many":     {"\x01\xff\xff", thriftwire.LimitExceeded, 3, "at least 65535 key-value pairs"},
		"too many in two":       {many(limits.HeaderPairs) + "\x10\x00\x01", thriftwire.LimitExceeded, 2054, "at least 513 key-value pairs"},
		"too many tokens":       {strings.Repeat(token(""), limits.HeaderPairs+1), thriftwire.LimitExceeded, 1537, "at least 513"},
		"too many empty maps":   {strings.Repeat(stringMap(), limits.HeaderPairs+1), thriftwire.LimitExceeded, 1539, "at least 513"},
	} {
		info, err := wire.ParseInfo([]byte(test.blocks))
		var found *thriftwire.Error
		if !errors.As(err, &found) || found.Kind != test.kind || found.Offset != test.offset || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v; want kind %d at byte %d with %q", name, err, test.kind, test.offset, test.text)
		}
		if info.Len() != 0 || listing(info) != "" {
			t.Errorf("%s: a refused header has %d pairs", name, info.Len())
		}
	}
	if info := parse(t, many(limits.HeaderPairs)); info.Len() != limits.HeaderPairs {
		t.Errorf("as many pairs as allowed: %d were found", info.Len())
	}
}

// TestParseInfo_EveryTruncation cuts blocks at every byte: refused, except
// between blocks.
func TestParseInfo_EveryTruncation(t *testing.T) {
	blocks := []string{stringMap("isn", "Orders", "k", ""), "\x00\x00", token("t"), intMap(3, "client", "", "svc"), stringMap("k", "v")}
	whole := strings.Join(blocks, "")
	between := map[int]bool{0: true, len(whole): true, len(blocks[0]) + 1: true}
	sum := 0
	for _, block := range blocks {
		sum += len(block)
		between[sum] = true
	}
	for cut := range len(whole) + 1 {
		_, err := wire.ParseInfo([]byte(whole[:cut]))
		if (err == nil) != between[cut] {
			t.Errorf("cut at %d of %d: %v", cut, len(whole), err)
		}
	}
}

func TestInfo_DoesNotAllocate(t *testing.T) {
	b := []byte(stringMap("isn", "Orders", "RPC_PERSIST_k", "v") + intMap(3, "client", "c", "i", "svc"))
	withToken := append([]byte(token("secret")), b...)
	total := 0
	allocations := testing.AllocsPerRun(100, func() {
		info, err := wire.ParseInfo(withToken)
		if err != nil {
			t.Fatal(err)
		}
		service, _ := info.String("isn")
		caller, _ := info.Int(3)
		credential, _ := info.Token()
		if info, err = wire.ParseInfo(b); err != nil {
			t.Fatal(err)
		}
		total += len(service) + len(caller) + len(credential)
		for key, value := range info.Strings() {
			total += len(key) + len(value)
		}
		for key, value := range info.Ints() {
			total += int(key) + len(value)
		}
	})
	if allocations != 0 || total == 0 {
		t.Errorf("%v allocations a header", allocations)
	}
}

// FuzzParseInfo compares with a parser that is written the simple way: both
// accept the same and find the same pairs, in order, and look-ups find the last
// of each key.
func FuzzParseInfo(f *testing.F) {
	f.Add([]byte(stringMap("isn", "Orders", "k", "") + "\x00\x00" + intMap(3, "client", "svc") + token("secret")))
	f.Add([]byte(stringMap("k", "1", "k", "2") + stringMap(wire.TokenKey, "x") + intMap(1, "a") + intMap(1, "b") + "\x00"))
	f.Add([]byte("\x01\xff\xff"))
	f.Add([]byte("\x10\x00\x02\x00\x01\x00\x00"))
	f.Add([]byte(strings.Repeat("\x00", 20) + "\x02"))
	f.Fuzz(func(t *testing.T, b []byte) {
		info, err := wire.ParseInfo(b)
		want, ok := simpleParse(b)
		if (err == nil) != ok {
			t.Fatalf("ParseInfo(% x): %v; the simple parser says %v", b, err, ok)
		}
		if err != nil {
			return
		}
		if got := listing(info); got != want.listing || info.Len() != want.pairs || info.Size() > len(b) {
			t.Fatalf("%d pairs in %d bytes:\n%s, want %d pairs:\n%s", info.Len(), info.Size(), got, want.pairs, want.listing)
		}
		for key, value := range want.strings {
			if got, ok := info.String(key); !ok || string(got) != value {
				t.Fatalf("String(%q) = %q, %v; want %q", key, got, ok, value)
			}
		}
		for key, value := range want.ints {
			if got, ok := info.Int(key); !ok || string(got) != value {
				t.Fatalf("Int(%d) = %q, %v; want %q", key, got, ok, value)
			}
		}
		if duplicate := info.CopyTo(make([]byte, info.Size())); listing(duplicate) != want.listing {
			t.Fatalf("a copy has\n%s, want\n%s", listing(duplicate), want.listing)
		}
	})
}

type simpleInfo struct {
	strings map[string]string
	ints    map[uint16]string
	pairs   int
	listing string
}

// simpleParse reads blocks into maps.
func simpleParse(b []byte) (simpleInfo, bool) {
	info := simpleInfo{strings: map[string]string{}, ints: map[uint16]string{}}
	r := bytes.NewReader(b)
	broken := false
	number := func() uint16 {
		var n uint16
		if err := binary.Read(r, binary.BigEndian, &n); err != nil {
			broken = true
		}
		return n
	}
	text := func() string {
		n := number()
		if broken || int(n) > r.Len() {
			broken = true
			return ""
		}
		b := make([]byte, n)
		_, _ = r.Read(b)
		return string(b)
	}
	var stringLines, intLines string
	cost := 0
	for !broken && cost <= limits.HeaderPairs {
		id, err := r.ReadByte()
		if err != nil {
			info.listing = stringLines + intLines
			return info, true
		}
		count := uint16(1)
		switch id {
		case 0:
			continue
		case 1, 0x10:
			count = number()
		case 0x11:
		default:
			return info, false
		}
		cost += max(int(count), 1)
		for i := uint16(0); i < count && cost <= limits.HeaderPairs && !broken; i++ {
			if id == 0x10 {
				key, value := number(), text()
				info.ints[key] = value
				intLines += fmt.Sprintf("%d: %q\n", key, value)
			} else {
				key := "RPC_TRANSIT_gdpr-token"
				if id == 1 {
					key = text()
				}
				value := text()
				info.strings[key] = value
				stringLines += fmt.Sprintf("%q: %q\n", key, value)
			}
			info.pairs++
		}
	}
	return info, false
}

func BenchmarkInfo(b *testing.B) {
	blocks := []byte(stringMap("isn", "Orders", "RPC_PERSIST_trace", "0123456789abcdef") + intMap(1, "framed") + intMap(3, "client", "", "", "orders", "", "", "place") + intMap(12, "1000") + intMap(22, "1"))
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, err := wire.ParseInfo(blocks); err != nil {
				b.Fatal(err)
			}
		}
	})
	info, err := wire.ParseInfo(blocks)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("look up", func(b *testing.B) {
		for b.Loop() {
			if _, ok := info.Int(wire.KeyTimeout); !ok {
				b.Fatal("not found")
			}
		}
	})
	b.Run("range", func(b *testing.B) {
		for b.Loop() {
			found := false
			for key := range info.Ints() {
				found = found || key == wire.KeyTimeout
			}
			if !found {
				b.Fatal("not found")
			}
		}
	})
}
