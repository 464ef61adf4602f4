package thrift_test

import (
	"math"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestHostile_MessagesOfGigabytesAreRefused: counts are signed numbers of 32 bits, so a
// message that is longer could have as many elements as a negative one says. Of this one
// there is a page of memory.
func TestHostile_MessagesOfGigabytesAreRefused(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("there are not so many addresses")
	}
	length := int64(math.MaxUint32) + 100
	message, err := syscall.Mmap(-1, 0, int(length), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		t.Skipf("no %d bytes of addresses: %v", length, err)
	}
	defer func() {
		if err := syscall.Munmap(message); err != nil {
			t.Error(err)
		}
	}()
	copy(message, "\x0f\x00\x0c\x0c\xff\xff\xff\xff")
	for _, policy := range []thrift.Strings{thrift.StringsAuto, thrift.StringsMessage, thrift.StringsOwn} {
		err := thrift.UnmarshalOwned(message, &node{}, thrift.UnmarshalConfig{Strings: policy})
		if err == nil || !strings.Contains(err.Error(), "limit 2147483647") {
			t.Errorf("policy %d: %v, want the limit", policy, err)
		}
	}
}
