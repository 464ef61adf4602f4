package byteswap_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"

	"github.com/fulmar-rpc/fulmar/internal/byteswap"
)

// TestDispatch_UsesAssemblyWhereItCan tells from outside whether the public
// functions ran the assembly: given slices that overlap, which is not allowed,
// it leaves other bytes than the Go code, because it reads more before it
// writes. So assembly that is silently off fails, and so does assembly on a
// processor that lacks the instructions, as the second test pretends.
func TestDispatch_UsesAssemblyWhereItCan(t *testing.T) {
	want := assembled && processorHasAVX2(t) && !strings.Contains(os.Getenv("GODEBUG"), avx2Off)
	usesAssembly(t, want, subjects16())
	usesAssembly(t, want, subjects32())
	usesAssembly(t, want, subjects64())
}

func usesAssembly[T number](t *testing.T, want bool, subjects []subject[T]) {
	const count = 64
	result := func(convert func(numbers []T, content []byte)) []byte {
		numbers := randomNumbers[T](count + 1)
		content := byteswap.Memory(numbers)
		convert(numbers, content)
		return content
	}
	put := func(s subject[T]) []byte {
		return result(func(numbers []T, content []byte) { s.put(content[size[T]():], numbers[:count]) })
	}
	get := func(s subject[T]) []byte {
		return result(func(numbers []T, content []byte) { s.get(numbers[1:], content[:count*size[T]()]) })
	}
	public, portable := subjects[0], subjects[1]
	if got := !bytes.Equal(put(public), put(portable)); got != want {
		t.Errorf("Put%d uses assembly: %v, want %v", 8*size[T](), got, want)
	}
	if got := !bytes.Equal(get(public), get(portable)); got != want {
		t.Errorf("Get%d uses assembly: %v, want %v", 8*size[T](), got, want)
	}
}

// avx2Off makes package cpu deny that the processor has AVX2.
const avx2Off = "cpu.avx2=off"

func TestDispatch_DoesWithoutAVX2(t *testing.T) {
	if !assembled {
		t.Skip("this build has no assembly that could be switched off")
	}
	command := exec.Command(os.Args[0], "-test.run=^TestDispatch_UsesAssemblyWhereItCan$|^TestConversion_InPlace$", "-test.count=1", "-test.v")
	command.Env = append(os.Environ(), "GODEBUG="+avx2Off)
	output, err := command.CombinedOutput()
	if err != nil || !bytes.Contains(output, []byte("--- PASS: TestDispatch_UsesAssemblyWhereItCan")) {
		t.Errorf("without AVX2: %v\n%s", err, output)
	}
}

// processorHasAVX2 asks the system, where it can: what the package itself relies
// on could be wrong.
func processorHasAVX2(t *testing.T) bool {
	information, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Logf("package cpu is believed, because the system does not tell: %v", err)
		return cpu.X86.HasAVX2
	}
	for line := range strings.Lines(string(information)) {
		if flags, ok := strings.CutPrefix(line, "flags"); ok {
			return strings.Contains(flags+" ", " avx2 ")
		}
	}
	return false
}
