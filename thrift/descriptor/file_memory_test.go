package descriptor_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/thrift/descriptor"
)

// TestFile_CopiesItsBytesOnce when it is asked for the first time.
func TestFile_CopiesItsBytesOnce(t *testing.T) {
	name := strings.Repeat("n", 1<<20)
	file := encode(t, &descriptor.Definition{Structs: []descriptor.Struct{{Name: name}}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	definition, err := file.Definition()
	runtime.ReadMemStats(&after)
	if err != nil || definition.Structs[0].Name != name {
		t.Fatalf("another name comes back, %v", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 3<<19 {
		t.Errorf("%d bytes allocated to read %d", got, len(file.Encoded))
	}
}
