package main

// finish is a call that an instance will have worked off at a time.
type finish struct {
	at    int64
	order uint64 // of those at the same time, so that runs are the same
	call  *call
}

func (f finish) before(other finish) bool {
	return f.at < other.at || f.at == other.at && f.order < other.order
}

// finishes is a heap of them, the first one on top.
type finishes []finish

func (h *finishes) push(f finish) {
	*h = append(*h, f)
	heap := *h
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !heap[i].before(heap[parent]) {
			return
		}
		heap[i], heap[parent] = heap[parent], heap[i]
		i = parent
	}
}

func (h *finishes) pop() finish {
	heap := *h
	top, last := heap[0], len(heap)-1
	heap[0], heap[last] = heap[last], finish{}
	heap = heap[:last]
	*h = heap
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && heap[child+1].before(heap[child]) {
			child++
		}
		if !heap[child].before(heap[i]) {
			return top
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// queue is calls, the first in the first out.
type queue struct {
	calls []*call
	head  int
}

func (q *queue) waiting() int { return len(q.calls) - q.head }

func (q *queue) empty() bool { return q.head == len(q.calls) }

func (q *queue) push(c *call) { q.calls = append(q.calls, c) }

func (q *queue) first() *call { return q.calls[q.head] }

func (q *queue) pop() *call {
	c := q.calls[q.head]
	q.calls[q.head] = nil
	if q.head++; q.head > 1024 && q.head*2 > len(q.calls) {
		q.calls = q.calls[:copy(q.calls, q.calls[q.head:])]
		q.head = 0
	}
	return c
}
