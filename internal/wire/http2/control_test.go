package http2_test

import (
	"slices"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

func TestConn_GoAwayTellsOfEachStreamOnce(t *testing.T) {
	var s *side
	var reset []uint32
	s = newSide(t, http2.Config{Client: true}, func(e http2.Event) {
		switch {
		case e.Kind == http2.EventGoAway:
			// The caller has given up two of them meanwhile.
			s.conn.Release(5)
			s.conn.Release(9)
		case e.Kind == http2.EventReset && e.NotExecuted:
			if e.Value != e.Stream {
				t.Errorf("stream %d has the value %v", e.Stream, e.Value)
			}
			reset = append(reset, e.Stream)
			s.conn.Release(e.Stream)
		}
	})
	s.arrive(frame(http2.FrameSettings, 0, 0))
	for range 6 {
		id, err := s.conn.Open(requestFields(), true, s.now)
		if err != nil {
			t.Fatal(err)
		}
		s.conn.Attach(id, id)
	}
	goAway := frame(http2.FrameGoAway, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0)
	s.arrive(append(goAway, goAway...))
	if want := []uint32{7, 11}; !slices.Equal(reset, want) || s.err != nil || s.conn.Streams() != 2 {
		t.Fatalf("told of %v, want %v; %d streams are left: %v", reset, want, s.conn.Streams(), s.err)
	}
}

// TestConn_WaitsForPeersThatItReads: as long as nothing is read, no answer can be late.
func TestConn_WaitsForPeersThatItReads(t *testing.T) {
	s := newSide(t, http2.Config{UnsentBytes: 1}, nil)
	s.now += 11 * second
	if _, err := s.conn.Tick(s.now); err != nil {
		t.Fatalf("our settings are not sent yet: %v", err)
	}
	s.take()
	if _, err := s.conn.Tick(s.now); codeOf(err) != int(http2.SettingsTimeout) {
		t.Fatalf("without an answer for 11 s: %v", err)
	}
}

// TestHeaderWriter_ObeysTheTable changes the size of the peer's table, twice before each
// block: what is written can be read by a decoder that knows one change a block only.
func TestHeaderWriter_ObeysTheTable(t *testing.T) {
	writer := http2.NewHeaderWriter()
	reader := hpack.NewDecoder(4096, nil)
	var lengths []int
	for _, sizes := range [][2]uint32{{4096, 4096}, {1 << 20, 4096}, {300, 200}, {100, 4096}, {0, 4096}} {
		writer.SetTable(sizes[0])
		writer.SetTable(sizes[1])
		for range 2 {
			block := writer.Write(requestFields())
			fields, err := reader.DecodeFull(block)
			if err != nil || !slices.Equal(fields, requestFields()) {
				t.Fatalf("with tables of %d bytes: %v, %v", sizes, fields, err)
			}
			lengths = append(lengths, len(block))
		}
	}
	if want := []int{6, 3, 3, 3, 6, 3, 5, 3, 7, 6}; !slices.Equal(lengths, want) {
		t.Fatalf("blocks are %v bytes long, want %v", lengths, want)
	}
}

// TestHeaderReader_TwoChangesOfTheTable: RFC 7541, 4.2 asks a peer whose table was made
// smaller and then larger for both changes, in front of one block.
func TestHeaderReader_TwoChangesOfTheTable(t *testing.T) {
	reader := http2.NewHeaderReader(1000)
	if _, _, err := reader.Read([]byte{0x40, 1, 'a', 1, 'b'}); err != nil {
		t.Fatal(err)
	}
	// To 100 and to 4,096 bytes: the entry of 34 stays, and is referred to.
	fields, _, err := reader.Read([]byte{0x3f, 100 - 31, 0x3f, 0xe1, 0x1f, 0xbe})
	if want := []http2.Field{{Name: "a", Value: "b"}}; err != nil || !slices.Equal(fields, want) {
		t.Fatalf("%v, want %v: %v", fields, want, err)
	}
	for _, block := range [][]byte{
		{0x82, 0x3f, 100 - 31},                         // Behind a field.
		{0x3f, 100 - 31, 0x3f, 80 - 31, 0x3f, 70 - 31}, // A third one.
		{0x3f, 0xe2, 0x1f},                             // More than allowed.
		{0x3f, 0xff},                                   // Without an end.
	} {
		reader := http2.NewHeaderReader(1000)
		if _, _, err := reader.Read([]byte{0x40, 1, 'a', 1, 'b'}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := reader.Read(block); codeOf(err) != int(http2.CompressionError) {
			t.Errorf("% x: %v", block, err)
		}
	}
}
