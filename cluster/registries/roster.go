package registries

import (
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
// registry that loses them loses them one by one, and has them back one by one: who is
// held stays in lists until it is back or its time is over, however many are back.
type Roster struct {
	// Hold is how long vanished instances count; none do unless it is positive. Interval
	// is how far apart lists are at least. Common has HoldTime and DeliverInterval for
	// them.
	Hold, Interval time.Duration
	// Max is how many vanished instances are kept in mind: as many as there may be, of
	// which Common has MaxInstances.
	Max int

	present map[string]cluster.Instance // by address
	gone    map[string]departure
	// last is the list that was made last, and at when; made is false before the first.
	last []cluster.Instance
	at   time.Time
	made bool
}

// departure is an instance that was present until a time. It is in lists if it is held.
type departure struct {
	instance cluster.Instance
	at       time.Time
	held     bool
}

// Update is told which instances there are; of two with one address the first one counts.
// It returns a list, by address, if it is time for one and something changed, and after
// which time it wants to be called again even if nothing changes, 0 for never. What it
// returns is the caller's, but for the tags; what it is given it does not keep.
func (r *Roster) Update(now time.Time, instances []cluster.Instance) (list []cluster.Instance, ok bool, again time.Duration) {
	r.note(now, instances)
	if wait := r.Interval - now.Sub(r.at); r.made && wait > 0 {
		return nil, false, wait
	}
	list = slices.Collect(maps.Values(r.present))
	many := len(r.present) == 0 || len(r.gone) > 1 && 3*len(r.gone) > len(r.present)
	for address, left := range r.gone {
		if !left.held && !many {
			continue
		}
		left.held = true
		r.gone[address] = left
		list = append(list, left.instance)
		if remains := left.at.Add(r.Hold).Sub(now); again == 0 || remains < again {
			again = remains
		}
	}
	slices.SortFunc(list, func(a, b cluster.Instance) int { return strings.Compare(a.Address, b.Address) })
	if r.made && slices.EqualFunc(list, r.last, sameInstance) {
		return nil, false, again
	}
	r.last, r.at, r.made = list, now, true
	return slices.Clone(list), true, again
}

// note writes down who came and who left.
func (r *Roster) note(now time.Time, instances []cluster.Instance) {
	before := r.present
	r.present = make(map[string]cluster.Instance, len(instances))
	for _, instance := range instances {
		if _, twice := r.present[instance.Address]; !twice {
			r.present[instance.Address] = instance
		}
		delete(r.gone, instance.Address)
	}
	for address, left := range r.gone {
		if now.Sub(left.at) >= r.Hold {
			delete(r.gone, address)
		}
	}
	if r.Hold <= 0 {
		return
	}
	for address, instance := range before {
		if _, still := r.present[address]; !still && len(r.gone) < r.Max {
			if r.gone == nil {
				r.gone = map[string]departure{}
			}
			r.gone[address] = departure{instance: instance, at: now}
		}
	}
}

func sameInstance(a, b cluster.Instance) bool {
	return a.Address == b.Address && a.Weight == b.Weight && a.Zone == b.Zone && maps.Equal(a.Tags, b.Tags)
}
