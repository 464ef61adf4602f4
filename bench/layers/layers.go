// Command layers tells where the processor time of a call goes, by layer: it reads the
// profiles that programs of the benchmark write if FULMAR_BENCH_PROFILES names a folder.
package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// layer is a part of the work, and what functions are called whose time it is.
type layer struct {
	name string
	// anywhere: the time is the layer's wherever on the stack such a function is.
	// Otherwise the function that is nearest to the leaf decides, of all layers.
	anywhere bool
	prefixes []string
}

// allLayers returns them in the order in which they are looked at. What no layer has is
// otherLayer.
func allLayers() []layer {
	return []layer{
		{"garbage collector", true, []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.gcStart", "runtime.gcMarkDone", "runtime.gcMarkTermination", "runtime.bgsweep", "runtime.bgscavenge", "runtime.sweepone", "runtime.(*sweepLocked).sweep", "gcWriteBarrier", "runtime.wbBufFlush", "runtime.bulkBarrierPreWrite"}},
		{"system calls: waiting", true, []string{"internal/runtime/syscall/linux.EpollWait", "golang.org/x/sys/unix.EpollWait", "runtime.netpoll", "runtime.futex", "github.com/fulmar-rpc/fulmar/eventloop.(*poller).poll", "golang.org/x/sys/unix.Nanosleep", "github.com/cloudwego/netpoll.EpollWait", "github.com/cloudwego/netpoll.epollwait"}},
		{"system calls: reading", true, []string{"syscall.read", "syscall.recvfrom", "syscall.Recvfrom", "golang.org/x/sys/unix.recvfrom", "github.com/fulmar-rpc/fulmar/eventloop.receiveOnce", "github.com/cloudwego/netpoll.readv", "github.com/cloudwego/netpoll.ioread"}},
		{"system calls: writing", true, []string{"syscall.write", "internal/poll.writev", "golang.org/x/sys/unix.write", "golang.org/x/sys/unix.sendmsg", "golang.org/x/sys/unix.sendto", "github.com/fulmar-rpc/fulmar/eventloop.sendOnce", "github.com/cloudwego/netpoll.sendmsg", "github.com/cloudwego/netpoll.writev", "github.com/cloudwego/netpoll.iosend"}},
		{"system calls: other", true, []string{"internal/runtime/syscall/linux.Syscall6", "syscall.RawSyscall", "syscall.rawSyscallNoError"}},
		{"scheduler", true, []string{"runtime.schedule", "runtime.mcall", "runtime.park_m", "runtime.goready", "runtime.gopark", "runtime.chansend", "runtime.chanrecv", "runtime.selectgo", "runtime.newproc", "runtime.goschedImpl", "runtime.sysmon", "runtime.newstack", "runtime.semacquire", "runtime.semrelease"}},
		{"memory: allocating", true, []string{"runtime.mallocgc", "runtime.newobject", "runtime.makeslice", "runtime.growslice"}},
		{"memory: copying, clearing", true, []string{"runtime.memmove", "runtime.memclrNoHeapPointers"}},
		{"codec", false, []string{"github.com/fulmar-rpc/fulmar/thrift.", "github.com/fulmar-rpc/fulmar/bench/gen/", "github.com/fulmar-rpc/fulmar/internal/byteswap."}},
		{"framing", false, []string{"github.com/fulmar-rpc/fulmar/internal/wire", "github.com/fulmar-rpc/fulmar/internal/thriftwire."}},
		{"connections", false, []string{"github.com/fulmar-rpc/fulmar/internal/transport.", "github.com/fulmar-rpc/fulmar/eventloop.", "github.com/fulmar-rpc/fulmar/internal/linkbuf.", "github.com/fulmar-rpc/fulmar/internal/workers.", "internal/poll.", "net."}},
		{"dispatch", false, []string{"github.com/fulmar-rpc/fulmar."}},
		{"caller and handler", false, []string{"main.", "github.com/fulmar-rpc/fulmar/bench/", "github.com/fulmar-rpc/fulmar/internal/loadgen."}},
		{"other library", false, []string{"github.com/"}},
	}
}

const otherLayer = "other"

// layerOf returns which of the layers a stack of functions is in, the leaf first.
func layerOf(layers []layer, stack []string) string {
	for _, l := range layers {
		if l.anywhere && slices.ContainsFunc(stack, l.has) {
			return l.name
		}
	}
	for _, function := range stack {
		for _, l := range layers {
			if !l.anywhere && l.has(function) {
				return l.name
			}
		}
	}
	return otherLayer
}

func (l layer) has(function string) bool {
	return slices.ContainsFunc(l.prefixes, func(prefix string) bool { return strings.HasPrefix(function, prefix) })
}

// sample is a stack that was seen, the leaf first, and how much time it stands for.
type sample struct {
	stack []string
	nanos int64
}

// share is what part of the time a layer takes.
type share struct {
	layer string
	nanos int64
}

// sum adds up samples by layer, in the order of the layers.
func sum(samples []sample) (shares []share, total int64) {
	layers, nanos := allLayers(), map[string]int64{}
	for _, s := range samples {
		nanos[layerOf(layers, s.stack)] += s.nanos
		total += s.nanos
	}
	for _, l := range layers {
		shares = append(shares, share{l.name, nanos[l.name]})
	}
	return append(shares, share{otherLayer, nanos[otherLayer]}), total
}

// column is a profile with its name.
type column struct {
	name    string
	samples []sample
}

// write prints a table in Markdown of the percentages of each profile.
func write(out io.Writer, columns []column) error {
	layers := allLayers()
	header, rule := "| layer |", "|---|"
	rows := make([]string, len(layers)+1)
	for i, l := range layers {
		rows[i] = "| " + l.name + " |"
	}
	rows[len(layers)] = "| " + otherLayer + " |"
	for _, c := range columns {
		header, rule = header+" "+c.name+" |", rule+"--:|"
		shares, total := sum(c.samples)
		for i, s := range shares {
			rows[i] += fmt.Sprintf(" %.1f %% |", 100*float64(s.nanos)/float64(max(total, 1)))
		}
	}
	_, err := fmt.Fprintln(out, strings.Join(append([]string{header, rule}, rows...), "\n"))
	return err
}

// top returns the functions with the most time in a layer, for who wonders what is in it.
func top(samples []sample, name string, n int) []share {
	layers, nanos := allLayers(), map[string]int64{}
	for _, s := range samples {
		if layerOf(layers, s.stack) == name && len(s.stack) > 0 {
			nanos[s.stack[0]] += s.nanos
		}
	}
	var shares []share
	for function, time := range nanos {
		shares = append(shares, share{function, time})
	}
	slices.SortFunc(shares, func(a, b share) int { return cmp.Or(cmp.Compare(b.nanos, a.nanos), cmp.Compare(a.layer, b.layer)) })
	return shares[:min(n, len(shares))]
}
