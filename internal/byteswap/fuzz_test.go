package byteswap_test

import (
	"bytes"
	"testing"
)

// FuzzConversion reads any bytes as numbers of each width, compares them with
// bytes that are taken one at a time, and writes them again, from and to any
// alignment.
func FuzzConversion(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08"), uint8(1))
	f.Add(bytes.Repeat([]byte{0x80, 0x7f, 0xff, 0x00, 0x01}, 60), uint8(3<<4|5))
	f.Fuzz(func(t *testing.T, content []byte, alignment uint8) {
		for _, s := range subjects16() {
			readAndWrite(t, s, content, alignment)
		}
		for _, s := range subjects32() {
			readAndWrite(t, s, content, alignment)
		}
		for _, s := range subjects64() {
			readAndWrite(t, s, content, alignment)
		}
	})
}

// readAndWrite takes the alignment to read from from the lower half of alignment,
// the one to write to from the upper half.
func readAndWrite[T number](t *testing.T, s subject[T], content []byte, alignment uint8) {
	memory := append(make([]byte, alignment&15), content...)[alignment&15:]
	numbers := make([]T, len(content)/size[T]())
	s.get(numbers, memory)
	want := content[:len(numbers)*size[T]()]
	if !bytes.Equal(bigEndian(numbers), want) {
		t.Fatalf("%d bits, %s: read %x from % x", 8*size[T](), s.name, numbers, want)
	}
	written := bytes.Repeat([]byte{guardByte}, int(alignment>>4)+len(want)+guard)
	rest := written[alignment>>4:][:len(want)+guard/2]
	s.put(rest, numbers)
	if !bytes.Equal(rest[:len(want)], want) {
		t.Fatalf("%d bits, %s: wrote % x of %x", 8*size[T](), s.name, rest[:len(want)], numbers)
	}
	if outside := len(written) - len(want); bytes.Count(written, []byte{guardByte}) != outside+bytes.Count(want, []byte{guardByte}) {
		t.Fatalf("%d bits, %s: wrote outside of its %d bytes", 8*size[T](), s.name, len(want))
	}
}
