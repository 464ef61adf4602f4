package view

import (
	"iter"
	"slices"
	"sort"
	"sync/atomic"
)

// runPatches is how many patches a run has at most. Who changes elements in any order copies
// a run each time, 8 KiB, and a slice of all runs: 40,000 numbers from the last to the
// first take 0.18 s. With one run for all it was 19 s.
const runPatches = 256

// elementPatches are the patches of the elements of a list, in order. They are never changed
// but replaced; copies share runs.
type elementPatches struct {
	// full are runs of patches, in order, with those of last behind them.
	full []fullRun
	last []viewPatch
	// taken is how many patches there are in the memory of last, which lists may share that
	// have the first ones in common.
	taken *atomic.Int64
}

// fullRun is a run that is only replaced as a whole.
type fullRun struct {
	patches []viewPatch
	// gone is how many of them remove their element.
	gone int
}

func newFullRun(patches []viewPatch) fullRun { return fullRun{patches, goneIn(patches)} }

func goneIn(patches []viewPatch) (gone int) {
	for i := range patches {
		if patches[i].form == patchNone {
			gone++
		}
	}
	return gone
}

// runs returns all patches, in order.
func (p *elementPatches) runs() iter.Seq[[]viewPatch] {
	return func(yield func([]viewPatch) bool) {
		for _, run := range p.full {
			if !yield(run.patches) {
				return
			}
		}
		yield(p.last)
	}
}

// find returns the patch of an element, or the nearest one of those in front of it; nil if
// there is none.
func (p *elementPatches) find(element int) *viewPatch {
	run := p.last
	if len(run) == 0 || int(run[0].of) > element {
		behind := sort.Search(len(p.full), func(i int) bool { return int(p.full[i].patches[0].of) > element })
		if behind == 0 {
			return nil
		}
		run = p.full[behind-1].patches
	}
	behind := sort.Search(len(run), func(i int) bool { return int(run[i].of) > element })
	return &run[behind-1]
}

// add adds a patch, or replaces the one for the same element. Who changes one element
// after the other does not copy those before each time: what is behind the end of the last
// run belongs to the first who takes it, whichever goroutine has a copy of the view, and
// nobody reads behind the end of his own.
func (p *elementPatches) add(patch *viewPatch) {
	if n := len(p.full); n > 0 && lastOf(p.full[n-1].patches) >= patch.of {
		p.insert(patch)
		return
	}
	switch n := len(p.last); {
	case n > 0 && p.last[n-1].of >= patch.of:
		p.last = withPatch(p.last, patch)
	case n >= runPatches:
		p.full, p.last = append(slices.Clip(p.full), newFullRun(p.last)), []viewPatch{*patch}
	case n < cap(p.last) && p.taken.CompareAndSwap(int64(n), int64(n+1)):
		p.last = append(p.last, *patch)
		return
	default:
		p.last = append(append(make([]viewPatch, 0, min(2*n+1, runPatches)), p.last...), *patch)
	}
	if len(p.last) > runPatches {
		p.full, p.last = append(slices.Clip(p.full), halves(p.last)...), nil
	}
	p.taken = new(atomic.Int64)
	p.taken.Store(int64(len(p.last)))
}

// insert is add where full has patches of elements that are not in front.
func (p *elementPatches) insert(patch *viewPatch) {
	at := sort.Search(len(p.full), func(i int) bool { return lastOf(p.full[i].patches) >= patch.of })
	run := withPatch(p.full[at].patches, patch)
	if len(run) > runPatches {
		p.full = slices.Concat(p.full[:at], halves(run), p.full[at+1:])
		return
	}
	p.full = slices.Clone(p.full)
	p.full[at] = newFullRun(run)
}

func lastOf(run []viewPatch) int32 { return run[len(run)-1].of }

// halves returns the two halves of a run.
func halves(run []viewPatch) []fullRun {
	half := len(run) / 2
	return []fullRun{newFullRun(run[:half:half]), newFullRun(run[half:])}
}

// original returns which element i is if those that were removed are counted.
func (p *elementPatches) original(i int) int {
	for at := range p.full {
		run := &p.full[at]
		if int(lastOf(run.patches)) < i+run.gone {
			i += run.gone // each of them is in front of what i has become before
			continue
		}
		if i = originalIn(run.patches, i); int(lastOf(run.patches)) > i {
			return i
		}
	}
	return originalIn(p.last, i)
}

func originalIn(run []viewPatch, i int) int {
	for at := range run {
		if patch := &run[at]; patch.form == patchNone && int(patch.of) <= i {
			i++
		}
	}
	return i
}
