package roundtrip_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/golden/fieldtypes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestBytes_AreListsOfNumbersOnTheWire has Bytes.Numbers, a []int8, beside Bytes.Plain.
func TestBytes_AreListsOfNumbersOnTheWire(t *testing.T) {
	for _, n := range []int{0, 1, 3, 255, 4096, 100_000} {
		octets, numbers := make([]byte, n), make([]int8, n)
		for i := range n {
			octets[i], numbers[i] = byte(i*7), int8(i*7)
		}
		message := marshal(t, &fieldtypes.Bytes{Plain: octets, Numbers: numbers, Must: []byte{}, Preset: []byte{}})
		const first, sixth = "\x0f\x00\x01", "\x0f\x00\x06"
		value := "\x03" + string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + string(octets)
		if !bytes.Contains(message, []byte(first+value)) || !bytes.Contains(message, []byte(sixth+value)) {
			t.Errorf("%d: %.200q", n, message)
		}
		got := fieldtypes.NewBytes()
		if err := thrift.Unmarshal(message, got); err != nil || !bytes.Equal(got.Plain, octets) || got.Plain == nil || got.Preset == nil || got.Maybe != nil {
			t.Errorf("%d: %v, %v", n, err, got)
		}
		if n > 0 {
			clear(message)
			if !bytes.Equal(got.Plain, octets) {
				t.Errorf("%d: they refer to the message", n)
			}
		}
	}
}

func TestBytes_Semantics(t *testing.T) {
	s := fieldtypes.NewBytes()
	if !bytes.Equal(s.Preset, []byte{1, 128, 255}) || !bytes.Equal(s.GetLater(), []byte{255}) || !bytes.Equal(fieldtypes.OCTETS.Maybe, []byte{254}) {
		t.Errorf("defaults: %v, %v, %v", s.Preset, s.GetLater(), fieldtypes.OCTETS.Maybe)
	}
	s.Preset[0] = 9
	if fieldtypes.NewBytes().Preset[0] != 1 {
		t.Error("two new structs share their defaults")
	}
	s.Plain, s.Must = []byte("a\xff"), []byte{}
	if got, want := s.String(), `fieldtypes.Bytes(plain: "a\xff", must: "", preset: "\t\x80\xff", count: 0)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	clone := s.Clone()
	if clone.Plain[0] = 'b'; s.Plain[0] != 'a' || s.Equal(clone) {
		t.Error("a clone shares bytes")
	}
	clone.Plain[0], clone.Maybe = 'a', []byte{}
	if s.Equal(clone) || clone.Equal(s) {
		t.Error("an optional that is empty equals none")
	}
	if got, want := s.SizeThrift(), len(marshal(t, s)); got != want {
		t.Errorf("size %d, want %d", got, want)
	}
	for name, message := range map[string][]byte{
		"no required one":         wire("\x0f\x00\x01\x03\x00\x00\x00\x00"),
		"one of another element":  wire("\x0e\x00\x02\x08\x00\x00\x00\x01\x00\x00\x00\x01"),
		"a list in place of sets": wire("\x0f\x00\x02\x03\x00\x00\x00\x00"),
	} {
		if err := thrift.Unmarshal(message, fieldtypes.NewBytes()); err == nil || !strings.Contains(err.Error(), "required but absent: must") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// More than came, and then more than may be allocated.
	if err := thrift.Unmarshal(wire("\x0f\x00\x01\x03\x00\x00\x00\x09"), fieldtypes.NewBytes()); err == nil || !strings.Contains(err.Error(), "declares 9 elements") {
		t.Error(err)
	}
	long := marshal(t, &fieldtypes.Digest{Sum: make([]byte, 1<<20)})
	m := limits.DefaultMessage()
	m.DecodeBytesMax = 1 << 19
	_, err := thrift.Codec{}.ReadBody(long, &fieldtypes.Digest{}, m, false)
	wantError(t, err, "fieldtypes.Digest", "bytes more memory than a message of")
}

func TestBytes_AreBase64InJSON(t *testing.T) {
	s := &fieldtypes.Bytes{Plain: []byte{0xfb, 0xff}, Must: []byte{}, Numbers: []int8{-1}}
	text, err := json.Marshal(s)
	if want := `{"plain":"+/8=","must":"","preset":null,"numbers":[-1],"count":0}`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	got := fieldtypes.NewBytes()
	if err := json.Unmarshal([]byte(`{"plain":"+/8=","preset":"AQ==","maybe":""}`), got); err != nil {
		t.Fatal(err)
	}
	if string(got.Plain) != "\xfb\xff" || string(got.Preset) != "\x01" || got.Maybe == nil {
		t.Errorf("%v", got)
	}
	var union fieldtypes.Content
	if err := json.Unmarshal([]byte(`{"raw":"AQ=="}`), &union); err != nil || string(union.Raw) != "\x01" {
		t.Errorf("%v, %v", union, err)
	}
}

func TestBytes_TakeTheMemoryOfTheStructBefore(t *testing.T) {
	message := marshal(t, &reuse.Branch{Bytes: bytes.Repeat([]byte{7}, 100)})
	branch := reuse.Branch{Bytes: make([]byte, 0, 200)}
	before := &branch.Bytes[:1][0]
	for range 3 {
		if err := thrift.UnmarshalOwned(message, &branch, thrift.UnmarshalConfig{Reuse: true}); err != nil {
			t.Fatal(err)
		}
		if len(branch.Bytes) != 100 || branch.Bytes[99] != 7 || &branch.Bytes[0] != before {
			t.Errorf("%v", branch.Bytes)
		}
	}
	if err := thrift.UnmarshalOwned(wire(), &branch, thrift.UnmarshalConfig{Reuse: true}); err != nil || branch.Bytes != nil {
		t.Errorf("%v, %v", branch.Bytes, err)
	}
}

func TestBytes_InViews(t *testing.T) {
	sent := views.NewOctets()
	sent.Plain, sent.Must, sent.Digest = []byte{1, 2, 255}, []byte{}, &views.Digest{Sum: []byte{3}}
	v, err := views.NewOctetsView(sent)
	if err != nil {
		t.Fatal(err)
	}
	digest := v.Digest()
	if string(v.Plain()) != "\x01\x02\xff" || v.Must() == nil || len(v.Must()) != 0 || v.Maybe() != nil || string(v.Preset()) != "\x01\xff" || string(v.Later()) != "\x80" || string(digest.Sum()) != "\x03" {
		t.Errorf("%v", v.String())
	}
	if got := v.Plain(); cap(got) != len(got) {
		t.Error("what is appended to bytes of a view would be written over what is behind them")
	}
	v.SetPlain(nil)
	v.SetMaybe([]byte{4})
	v.SetMust([]byte{5, 6})
	v.ClearPreset()
	got, err := v.Struct()
	want := &views.Octets{Plain: []byte{}, Maybe: []byte{4}, Must: []byte{5, 6}, Preset: []byte{1, 255}, Digest: sent.Digest}
	if err != nil || !got.Equal(want) {
		t.Fatalf("%v, %v; want %v", got, err, want)
	}
	if string(v.Maybe()) != "\x04" || string(v.Must()) != "\x05\x06" || v.Plain() == nil || !v.HasMaybe() {
		t.Errorf("%v", v.String())
	}
	v.SetMaybe(nil)
	if v.HasMaybe() || v.Maybe() != nil {
		t.Errorf("%v", v.String())
	}
	if text, other := v.String(), ""; text == other || text != strings.Replace(want.String(), `maybe: "\x04", `, "", 1) {
		t.Errorf("%s\n%s", text, want)
	}
}
