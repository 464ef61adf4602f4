//go:build linux

package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWaits_FindTheEventThatIsThere(t *testing.T) {
	for _, w := range waits() {
		repeat, err := w.repeat()
		if err != nil {
			t.Fatal(err)
		}
		took, err := repeat.Times(100)
		if err != nil || took <= 0 {
			t.Errorf("%s: %v, %v", w.name, took, err)
		}
		if err := repeat.Close(); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
		if _, err := repeat.Times(1); err == nil {
			t.Errorf("%s: no error without an epoll", w.name)
		}
	}
}

func TestDirectories_FindWhatWasAdded(t *testing.T) {
	for _, named := range directories() {
		d := named.make()
		var connections []*connection
		var added []uint64
		for fd := range 300 {
			c := &connection{fd: fd}
			connections, added = append(connections, c), append(added, d.add(c))
		}
		for i, c := range connections {
			var event unix.EpollEvent
			setData(&event, added[i])
			if found := d.find(data(&event)); found != c {
				t.Fatalf("%s: found %p for connection %d, want %p", named.name, found, i, c)
			}
		}
		for _, c := range connections {
			d.remove(c)
		}
		c := &connection{fd: 7}
		if found := d.find(d.add(c)); found != c {
			t.Errorf("%s: found %p after all others were removed, want %p", named.name, found, c)
		}
	}
}

// This is what a pointer, and a descriptor that is used again, cannot tell.
func TestSlots_KnowOldEvents(t *testing.T) {
	d := newSlots()
	first := &connection{fd: 7}
	old := d.add(first)
	d.remove(first)
	if found := d.find(old); found != nil {
		t.Errorf("found %p for a connection that was removed", found)
	}
	second := &connection{fd: 7}
	now := d.add(second)
	if d.find(old) != nil || d.find(now) != second || uint32(old) != uint32(now) {
		t.Errorf("the slot of %x is used again by %x: found %p and %p, want nothing and %p", old, now, d.find(old), d.find(now), second)
	}
	if found := d.find(99); found != nil {
		t.Errorf("found %p in a slot that does not exist", found)
	}
}

func TestFinding_Repeats(t *testing.T) {
	for _, named := range directories() {
		repeat := finding(named.make())
		if took, err := repeat.Times(2*findingConnections + 1); err != nil || took <= 0 {
			t.Errorf("%s: %v, %v", named.name, took, err)
		}
		if err := repeat.Close(); err != nil {
			t.Errorf("%s: %v", named.name, err)
		}
	}
}

func TestPools_LendEnough(t *testing.T) {
	for _, named := range pools() {
		p := named.make()
		for _, n := range []int{1, 2, 512, 513, 1 << 10, 100, 8 << 10, 8<<10 + 1, 1 << 20, 3, 1<<20 - 1} {
			b := p.get(n)
			if len(b.bytes) < n {
				t.Fatalf("%s: %d bytes, want %d", named.name, len(b.bytes), n)
			}
			p.put(b)
		}
	}
}

func TestOnePool_LetsGoOfLargeMemory(t *testing.T) {
	for keep, want := range map[int]int{cappedBytes: 0, 1 << 20: 100_000} {
		b := &buffer{make([]byte, 100_000)}
		(&onePool{keep: keep}).put(b)
		if len(b.bytes) != want {
			t.Errorf("of 100000 bytes %d are kept where %d may be, want %d", len(b.bytes), keep, want)
		}
	}
}

func TestMessageSizes_AreMixed(t *testing.T) {
	sizes := messageSizes()
	sum, large := 0, 0
	for _, size := range sizes {
		if size < 128 || size > 1<<20 {
			t.Fatalf("a message of %d bytes", size)
		}
		sum += size
		if size > 64<<10 {
			large++
		}
	}
	if mean := sum / len(sizes); mean < 10<<10 || mean > 20<<10 {
		t.Errorf("the mean is %d bytes", mean)
	}
	if share := float64(large) / float64(len(sizes)); share < 0.02 || share > 0.04 {
		t.Errorf("a share of %v is large, want about 0.03", share)
	}
	if !slices.Equal(sizes, messageSizes()) {
		t.Error("two variants would get different messages")
	}
}

func TestPooling_Repeats(t *testing.T) {
	for _, named := range pools() {
		repeat := pooling(named.make())
		if took, err := repeat.Times(3 * inFlight); err != nil || took <= 0 || !repeat.Heap {
			t.Errorf("%s: %v, %v, the heap is asked for: %v", named.name, took, err, repeat.Heap)
		}
	}
}

// What arrives is the same, inserted or copied.
func TestWriting_SendsTheWholeMessage(t *testing.T) {
	for _, insert := range []bool{true, false} {
		w, err := newWriter(4<<10, insert)
		if err != nil {
			t.Fatal(err)
		}
		for i := range w.source {
			w.source[i] = byte(i * 7 >> 3)
		}
		for message := range 3 {
			if err := w.send(); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, w.messageBytes())
			if _, err := io.ReadFull(reader(w.other), got); err != nil {
				t.Fatal(err)
			}
			from := message * w.size
			want := slices.Concat(w.source[:beforeBytes], w.source[from:from+w.size], w.source[:afterBytes])
			if !bytes.Equal(got, want) {
				t.Errorf("insert %v: message %d differs from what was sent", insert, message)
			}
		}
		if took, err := w.times(1000); err != nil || took <= 0 {
			t.Errorf("insert %v: %v, %v", insert, took, err)
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}
}

// reader reads from a descriptor that blocks.
type reader int

func (r reader) Read(p []byte) (int, error) {
	n, err := unix.Read(int(r), p)
	return n, os.NewSyscallError("read", err)
}
