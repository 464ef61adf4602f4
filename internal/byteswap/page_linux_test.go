package byteswap_test

import (
	"bytes"
	"os"
	"runtime/debug"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestConversion_StaysInItsPages puts both slices directly in front of memory
// that nobody may touch, and directly behind it: guards cannot show bytes that
// are read too much.
func TestConversion_StaysInItsPages(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	eachSubject(t, subjects16(), insidePages)
	eachSubject(t, subjects32(), insidePages)
	eachSubject(t, subjects64(), insidePages)
}

func insidePages[T number](t *testing.T, s subject[T]) {
	content, numberMemory := fencedPage(t), fencedPage(t)
	all := unsafe.Slice((*T)(unsafe.Pointer(&numberMemory[0])), len(numberMemory)/size[T]())
	original := randomNumbers[T](len(all))
	want := bigEndian(original)
	for length := range len(all) + 1 {
		try := func(name string, buf []byte, numbers []T) {
			defer func() {
				if fault := recover(); fault != nil {
					t.Fatalf("%d numbers at the %s of a page: %v", length, name, fault)
				}
			}()
			copy(numbers, original)
			clear(buf)
			if s.put(buf, numbers); !bytes.Equal(buf, want[:len(buf)]) {
				t.Fatalf("%d numbers at the %s of a page: wrong bytes", length, name)
			}
			clear(numbers)
			if s.get(numbers, buf); !equal(numbers, original[:length]) {
				t.Fatalf("%d numbers at the %s of a page: wrong numbers", length, name)
			}
		}
		try("beginning", content[:length*size[T]()], all[:length])
		try("end", content[len(content)-length*size[T]():], all[len(all)-length:])
	}
}

// fencedPage returns a page between two that fault when they are touched.
func fencedPage(t *testing.T) []byte {
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mprotect(memory[page:2*page], unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	return memory[page : 2*page : 2*page]
}
