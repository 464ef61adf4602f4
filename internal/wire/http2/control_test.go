package http2_test

import (
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

func TestConn_GoAwayTellsOfEachStreamOnce(t *testing.T) {
	var s *side
	var reset []uint32
	s = newSide(t, http2.Config{Client: true}, func(e http2.Event) {
		switch {
		case e.Kind == http2.EventGoAway:
			// The caller has given up two of them meanwhile.
			s.conn.Release(5, s.now)
			s.conn.Release(9, s.now)
		case e.Kind == http2.EventReset && e.NotExecuted:
			if e.Value != e.Stream {
				t.Errorf("stream %d has the value %v", e.Stream, e.Value)
			}
			reset = append(reset, e.Stream)
			s.conn.Release(e.Stream, s.now)
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

// TestHeaderWriter_ObeysTheTable changes the peer's table to sizes that it must follow,
// and one that it need not.
func TestHeaderWriter_ObeysTheTable(t *testing.T) {
	writer, reader := http2.NewHeaderWriter(), http2.NewHeaderReader(1000)
	lengths := map[uint32]int{}
	for _, size := range []uint32{4096, 0, 60, 4096, 1 << 20} {
		writer.SetTable(size)
		for range 2 {
			block := writer.Write(requestFields())
			fields, tooLarge, err := reader.Read(block)
			if err != nil || tooLarge || !slices.Equal(fields, requestFields()) {
				t.Fatalf("with a table of %d bytes: %v, %v, %v", size, fields, tooLarge, err)
			}
			lengths[size] = len(block)
		}
	}
	if lengths[0] <= lengths[4096] || lengths[1<<20] != lengths[4096] {
		t.Fatalf("blocks are %v bytes long", lengths)
	}
}
