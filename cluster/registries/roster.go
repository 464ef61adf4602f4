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
// registry that loses them loses them one by one, and has them back one by one: who has
// vanished when many had stays in lists until it is back or its time is over, however many
// are back.
type Roster struct {
	// Hold is how long vanished instances count; none do unless it is positive. Interval
	// is how far apart lists are at least. Common has HoldTime and DeliverInterval for
	// them.
	Hold, Interval time.Duration
	// Max is how many vanished instances are kept in mind: as many as there may be, of
	// which Common has MaxInstances.
	Max int

	// present are those that there are, gone those that vanished less than Hold ago, and
	// held those of them that are in lists; by address.
	present    map[string]cluster.Instance
	gone, held map[string]departure
	// expiry is when the first of gone and held is to be forgotten, or before; zero if there
	// are none.
	expiry time.Time
	// last is the list that was made last, and at when; made is false before the first.
	last []cluster.Instance
	at   time.Time
	made bool
}

// departure is an instance that was present until a time.
type departure struct {
	instance cluster.Instance
	at       time.Time
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
	for address, instance := range before {
		if _, still := r.present[address]; !still {
			r.leaves(now, instance)
		}
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
	for _, left := range r.held {
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

// comes notes that an instance is there.
func (r *Roster) comes(instance cluster.Instance) {
	r.present[instance.Address] = instance
	delete(r.gone, instance.Address)
	delete(r.held, instance.Address)
}

// leaves notes that an instance is there no more.
func (r *Roster) leaves(now time.Time, instance cluster.Instance) {
	if r.Hold <= 0 || len(r.gone)+len(r.held) >= r.Max {
		return
	}
	if r.gone == nil {
		r.gone, r.held = map[string]departure{}, map[string]departure{}
	}
	r.gone[instance.Address] = departure{instance: instance, at: now}
	if r.expiry.IsZero() {
		r.expiry = now.Add(r.Hold)
	}
}

// judge holds all that have vanished if they are many. It does so with each news, and not when
// a list is due: until then some may be back.
func (r *Roster) judge() {
	vanished := len(r.gone) + len(r.held)
	if len(r.present) > 0 && (vanished < 2 || 3*vanished <= len(r.present)) {
		return
	}
	maps.Copy(r.held, r.gone)
	clear(r.gone)
}

// expire forgets those that have vanished long ago.
func (r *Roster) expire(now time.Time) {
	if r.expiry.IsZero() || now.Before(r.expiry) {
		return
	}
	r.expiry = time.Time{}
	for _, departures := range [...]map[string]departure{r.gone, r.held} {
		for address, left := range departures {
			switch end := left.at.Add(r.Hold); {
			case !now.Before(end):
				delete(departures, address)
			case r.expiry.IsZero() || end.Before(r.expiry):
				r.expiry = end
			}
		}
	}
}

func sameInstance(a, b cluster.Instance) bool {
	return a.Address == b.Address && a.Weight == b.Weight && a.Zone == b.Zone && maps.Equal(a.Tags, b.Tags)
}
