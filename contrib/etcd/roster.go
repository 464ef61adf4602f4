package etcd

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// roster makes lists of instances of what a registry says, and keeps those a while that
// vanished from it if many did: it is told what time it is. The zero roster with its
// limits set knows nothing yet. One goroutine may use it at a time.
//
// Many are two or more, and more than a quarter of those that there were, or all. A
// registry that loses them loses them one by one, and has them back one by one: who is
// held stays in lists until it is back or its time is over, however many are back.
type roster struct {
	// hold is how long vanished instances count; none do unless it is positive. interval
	// is how far apart lists are.
	hold, interval time.Duration
	// max is how many vanished instances are kept in mind.
	max int

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

// update is told which instances there are. It returns a list if it is time for one and
// something changed, and after which time it wants to be called again even if nothing
// changes, 0 for never. What it returns is the caller's.
func (r *roster) update(now time.Time, instances []cluster.Instance) (list []cluster.Instance, ok bool, again time.Duration) {
	r.note(now, instances)
	if wait := r.interval - now.Sub(r.at); r.made && wait > 0 {
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
		if remains := left.at.Add(r.hold).Sub(now); again == 0 || remains < again {
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
func (r *roster) note(now time.Time, instances []cluster.Instance) {
	before := r.present
	r.present = make(map[string]cluster.Instance, len(instances))
	for _, instance := range instances {
		if _, twice := r.present[instance.Address]; !twice {
			r.present[instance.Address] = instance
		}
		delete(r.gone, instance.Address)
	}
	for address, left := range r.gone {
		if now.Sub(left.at) >= r.hold {
			delete(r.gone, address)
		}
	}
	if r.hold <= 0 {
		return
	}
	for address, instance := range before {
		if _, still := r.present[address]; !still && len(r.gone) < r.max {
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
