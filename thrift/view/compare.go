package view

import (
	"math"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// comparison compares structs as their Equal does.
type comparison struct{ walk }

func (c *comparison) structs(p *plan, a, b []byte) bool {
	mine, _ := c.start(p, a)
	theirs, _ := c.start(p, b)
	defer c.finish(mine)
	defer c.finish(theirs)
	for i := range p.fields {
		f := &p.fields[i]
		if mine[f.number].end == 0 && theirs[f.number].end == 0 {
			continue
		}
		left, right := c.of(f, a, mine), c.of(f, b, theirs)
		if c.failed {
			return false
		}
		if left == nil || right == nil {
			if (left == nil) != (right == nil) && (f.distinct || f.value.opt || f.value.pointer || !f.value.isEmpty(left) || !f.value.isEmpty(right)) {
				return false
			}
			continue
		}
		if !c.values(&f.value, left, right) {
			return false
		}
	}
	return true
}

// isEmpty says that a container or binary has nothing in it, or is nil.
func (v *planValue) isEmpty(b []byte) bool {
	switch v.form {
	case formList, formBytes:
		n, _, _ := v.list(b)
		return n == 0
	case formMap, formPairs:
		n, _, _ := v.entries(b)
		return n == 0
	}
	return len(b) <= stringHeader
}

// values compares values that are there.
func (c *comparison) values(v *planValue, a, b []byte) bool {
	switch v.form {
	case formText, formBinary:
		mine, _ := Text(a)
		theirs, _ := Text(b)
		return mine == theirs
	case formStruct:
		return c.structs(v.shape.plan(), a, b)
	case formList:
		return c.lists(v, a, b)
	case formBytes:
		return string(Bytes(a)) == string(Bytes(b))
	case formPairs:
		return c.pairsInOrder(v, a, b)
	case formMap:
		return c.maps(v, a, b)
	}
	switch v.wire {
	case thrift.Bool:
		return (a[0] == 1) == (b[0] == 1)
	case thrift.Double:
		mine, theirs := thrift.DoubleAt(a, 0), thrift.DoubleAt(b, 0)
		return mine == theirs || mine != mine && theirs != theirs
	}
	size := v.wire.FixedSize()
	return string(a[:size]) == string(b[:size])
}

func (c *comparison) lists(v *planValue, a, b []byte) bool {
	n, left, _ := v.list(a)
	m, right, _ := v.list(b)
	if n != m {
		return false
	}
	for range n {
		var mine, theirs []byte
		mine, left = c.cut(left, v.element.wire)
		theirs, right = c.cut(right, v.element.wire)
		if c.failed || !c.values(v.element, mine, theirs) {
			return false
		}
	}
	return true
}

func (c *comparison) pairsInOrder(v *planValue, a, b []byte) bool {
	n, left, _ := v.entries(a)
	m, right, _ := v.entries(b)
	if n != m {
		return false
	}
	for range n {
		var mine, theirs walkEntry
		mine, left = c.entry(v, left)
		theirs, right = c.entry(v, right)
		if c.failed || !c.values(v.key, mine.key, theirs.key) || !c.values(v.element, mine.value, theirs.value) {
			return false
		}
	}
	return true
}

func (c *comparison) maps(v *planValue, a, b []byte) bool {
	mine, index, _ := c.distinct(v, a, math.MaxInt)
	theirs, others, _ := c.distinct(v, b, math.MaxInt)
	if c.failed || len(mine) != len(theirs) {
		return false
	}
	for key, i := range index {
		at, found := others[key]
		if !found || !c.values(v.element, mine[i].value, theirs[at].value) {
			return false
		}
	}
	return true
}
