package registries

import (
	"container/list"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// Roster makes lists of instances of what a registry says, and keeps those a while that
// vanished from it if many did: it is told what time it is. One whose fields are set knows
// nothing yet. One goroutine may use it at a time.
//
// Many are two or more, and more than a quarter of those that there were, or all. A
// registry that loses them loses them one by one, and has them back one by one: who has
// vanished when many had stays in lists until it is back or its time is over, however many
// are back.
type Roster struct {
	// Hold is how long vanished instances count; none do unless it is positive. Interval
	// is how far apart lists are at least. Common has HoldTime and DeliverInterval for
	// them.
	Hold, Interval time.Duration
	// Max is how many vanished instances are kept in mind, those that vanished last, and how
	// many a list has with them: it has all that there are, and of the others only as many
	// as there is room for, because who gets it may take no more. Common has MaxInstances
	// for it.
	Max int

	// present are those that there are, by address.
	present map[string]cluster.Instance
	// departures are of those that vanished less than Hold ago, in the order in which they
	// did, and gone the same by address.
	departures list.List
	gone       map[string]*list.Element
	// last is the list that was made last, and at when; made is false before the first.
	last []cluster.Instance
	at   time.Time
	made bool
}

// departure is an instance that was present until a time. One that is held is in lists.
type departure struct {
	instance cluster.Instance
	at       time.Time
	held     bool
}

// Update is told which instances there are; of two with one address the first one counts.
// It returns what List does. What it is given it does not keep.
func (r *Roster) Update(now time.Time, instances []cluster.Instance) (list []cluster.Instance, ok bool, again time.Duration) {
	before := r.present
	r.present = make(map[string]cluster.Instance, len(instances))
	for _, instance := range instances {
		if _, twice := r.present[instance.Address]; !twice {
			r.comes(instance)
		}
	}
	r.expire(now)
	var left []string
	for address := range before {
		if _, still := r.present[address]; !still {
			left = append(left, address)
		}
	}
	slices.Sort(left) // where not all are kept, it is not chance who is
	for _, address := range left {
		r.leaves(now, before[address])
	}
	r.judge()
	return r.List(now)
}

// Change is told which instances have come, or are others than they were, and the addresses
// of which have left since it was told something. It takes as long as that is much, and Update
// and List as there are many.
func (r *Roster) Change(now time.Time, came []cluster.Instance, left []string) {
	if r.present == nil {
		r.present = map[string]cluster.Instance{}
	}
	r.expire(now)
	for _, instance := range came {
		r.comes(instance)
	}
	for _, address := range left {
		if instance, known := r.present[address]; known {
			delete(r.present, address)
			r.leaves(now, instance)
		}
	}
	r.judge()
}

// List returns a list, by address, if it is time for one and something changed, and after
// which time it wants to be called again even if nothing changes, 0 for never. What it
// returns is the caller's, but for the tags.
func (r *Roster) List(now time.Time) (list []cluster.Instance, ok bool, again time.Duration) {
	if wait := r.Interval - now.Sub(r.at); r.made && wait > 0 {
		return nil, false, wait
	}
	r.expire(now)
	list = slices.Collect(maps.Values(r.present))
	// Those that vanished last, and the last one added is the first that is forgotten.
	for e := r.departures.Back(); e != nil && len(list) < r.Max; e = e.Prev() {
		if left := e.Value.(*departure); left.held {
			list = append(list, left.instance)
			again = left.at.Add(r.Hold).Sub(now)
		}
	}
	slices.SortFunc(list, func(a, b cluster.Instance) int { return strings.Compare(a.Address, b.Address) })
	if r.made && slices.EqualFunc(list, r.last, sameInstance) {
		return nil, false, again
	}
	r.last, r.at, r.made = list, now, true
	return slices.Clone(list), true, again
}

// comes notes that an instance is there.
func (r *Roster) comes(instance cluster.Instance) {
	r.present[instance.Address] = instance
	if e, known := r.gone[instance.Address]; known {
		r.forget(e)
	}
}

// leaves notes that an instance is there no more. If too many have left, the first one of them
// is forgotten: instances that come and go by the thousand would take the place of those that
// vanish behind them.
func (r *Roster) leaves(now time.Time, instance cluster.Instance) {
	if r.Hold <= 0 || r.Max <= 0 {
		return
	}
	if r.departures.Len() >= r.Max {
		r.forget(r.departures.Front())
	}
	if r.gone == nil {
		r.gone = map[string]*list.Element{}
	}
	r.gone[instance.Address] = r.departures.PushBack(&departure{instance: instance, at: now})
}

func (r *Roster) forget(e *list.Element) {
	delete(r.gone, r.departures.Remove(e).(*departure).instance.Address)
}

// judge holds all that have vanished if they are many. It does so with each news, and not when
// a list is due: until then some may be back.
func (r *Roster) judge() {
	vanished := r.departures.Len()
	if len(r.present) > 0 && (vanished < 2 || 3*vanished <= len(r.present)) {
		return
	}
	// This holds all that there are, so those that are not held yet are the last ones.
	for e := r.departures.Back(); e != nil; e = e.Prev() {
		left := e.Value.(*departure)
		if left.held {
			break
		}
		left.held = true
	}
}

// expire forgets those that have vanished long ago.
func (r *Roster) expire(now time.Time) {
	for e := r.departures.Front(); e != nil; e = r.departures.Front() {
		if left := e.Value.(*departure); now.Before(left.at.Add(r.Hold)) {
			return
		}
		r.forget(e)
	}
}

func sameInstance(a, b cluster.Instance) bool {
	return a.Address == b.Address && a.Weight == b.Weight && a.Zone == b.Zone && maps.Equal(a.Tags, b.Tags)
}
