package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// DNSConfig configures a DNS.
type DNSConfig struct {
	// Name to look up: "host:port", whose addresses are the instances, or that of SRV
	// records, "_service._proto.domain", which name hosts, ports and weights. Required.
	Name string
	// Refresh is how long an answer is used, give or take a tenth. Default: as long as
	// it says that it holds (its TTL), 5 s (DNSRefreshMin) at least and 5 min
	// (DNSRefreshMax) at most, or 30 s (DNSRefresh) if it does not say so, as those of
	// hosts files and of a Resolver. Off: it is asked for once.
	Refresh time.Duration
	// Resolver asks; a *net.Resolver is one. Default: Go's, which reads resolv.conf and
	// hosts files and asks DNS. net.DefaultResolver asks what nsswitch.conf names, too.
	Resolver DNSResolver `json:"-"`
}

// DNSResolver asks DNS, as *net.Resolver does.
type DNSResolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// DNS finds the instances of a name in DNS. It asks again when an answer has become old.
// That there is no such name, or no answer, is told to Report, and the last list stays.
type DNS struct {
	name, host, port string
	// refresh is how long an answer is used that does not say so, or any if fixed.
	refresh time.Duration
	fixed   bool
	// resolver is nil for Go's, which uses dial.
	resolver DNSResolver
	dial     dialer
}

var _ Resolver = (*DNS)(nil)

// NewDNS returns a DNS. It asks nothing before Resolve.
func NewDNS(config DNSConfig) (*DNS, error) {
	d := &DNS{
		name: config.Name, refresh: limits.Or(config.Refresh, limits.DNSRefresh, 0), fixed: config.Refresh != 0,
		resolver: config.Resolver, dial: new(net.Dialer).DialContext,
	}
	if config.Refresh > 0 && config.Refresh < limits.ConfigDurationMin {
		return nil, fmt.Errorf("dns config: Refresh: %v is too short; was a unit forgotten? (at least %v)", config.Refresh, limits.ConfigDurationMin)
	}
	if strings.HasPrefix(config.Name, "_") {
		if parts := strings.SplitN(config.Name, ".", 3); len(parts) < 3 || !strings.HasPrefix(parts[1], "_") || parts[2] == "" || len(parts[0]) < 2 || len(parts[1]) < 2 {
			return nil, fmt.Errorf("dns config: Name: %.200q is not _service._proto.domain", config.Name)
		}
		return d, checkHost(config.Name)
	}
	host, port, err := net.SplitHostPort(config.Name)
	if err != nil {
		return nil, fmt.Errorf("dns config: Name: %.200q is neither host:port nor _service._proto.domain", config.Name)
	}
	if number, err := strconv.Atoi(port); err != nil || number < 1 || number > 65535 {
		return nil, fmt.Errorf("dns config: Name: %.200q: port %.20q is not a number from 1 to 65535", config.Name, port)
	}
	d.host, d.port = host, port
	return d, checkHost(host)
}

// dnsNameBytes is how long a name in DNS may be.
const dnsNameBytes = 255

func checkHost(host string) error {
	if host == "" {
		return errors.New("dns config: Name: the host is empty")
	}
	if len(host) > dnsNameBytes {
		return fmt.Errorf("dns config: Name: a name of %d bytes (limit %d)", len(host), dnsNameBytes)
	}
	if i := strings.IndexFunc(host, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("/[]", r) }); i >= 0 {
		return fmt.Errorf("dns config: Name: %q cannot be in a name", host[i:i+1])
	}
	return nil
}

// Resolve asks until ctx ends.
func (d *DNS) Resolve(ctx context.Context, deliver func([]Instance)) error {
	var last []Instance
	for {
		list, pause, err := d.lookUp(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			Report(ctx, fmt.Errorf("dns: %w", err))
		}
		if list != nil && !reflect.DeepEqual(list, last) {
			last = slices.Clone(list)
			deliver(list)
		}
		if last == nil {
			pause = min(pause, limits.RegisterPauseMin) // Somebody waits for it.
		}
		if d.refresh <= 0 && last != nil {
			return nil
		}
		if !wait(ctx, jittered(max(pause, limits.ResolvePauseMin))) {
			return ctx.Err()
		}
	}
}

// jittered returns a pause give or take a tenth, so that many who do the same do it at
// different times.
func jittered(pause time.Duration) time.Duration {
	tenth := pause / 10
	return pause - tenth + rand.N(2*tenth+1)
}

// wait waits, and returns false if ctx ends before.
func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// lookUp asks once, and returns how long to stay with what came. Its list is in an order
// that does not depend on that of the answer, and not empty; nil if there is none, which
// err says. With a list err is about what is not in it.
func (d *DNS) lookUp(ctx context.Context) (list []Instance, pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, limits.DNSTimeout)
	defer cancel()
	resolver, times := d.resolver, new(answerTimes)
	if resolver == nil {
		resolver = times.resolver(d.dial)
	}
	list, err = d.ask(ctx, resolver)
	pause = d.refresh
	if holds, ok := times.holds(); ok && list != nil && !d.fixed {
		pause = min(max(holds, limits.DNSRefreshMin), limits.DNSRefreshMax)
	}
	return list, pause, err
}

func (d *DNS) ask(ctx context.Context, resolver DNSResolver) ([]Instance, error) {
	if d.host == "" {
		_, records, err := resolver.LookupSRV(ctx, "", "", d.name)
		if err != nil && len(records) == 0 {
			return nil, err
		}
		// An answer of which a part makes no sense comes with an error.
		if err != nil {
			err = fmt.Errorf("records of %s are left out: %w", d.name, err)
		}
		list := instancesOfSRV(records)
		if len(list) == 0 {
			return nil, errors.Join(fmt.Errorf("%s has no SRV record that names a host", d.name), err)
		}
		return list, err
	}
	found, err := resolver.LookupNetIP(ctx, "ip", d.host)
	if err != nil {
		return nil, err
	}
	list := instancesOfIPs(found, d.port)
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no address", d.host)
	}
	return list, nil
}

// instancesOfIPs returns the instances at some addresses.
func instancesOfIPs(found []netip.Addr, port string) (list []Instance) {
	for i, ip := range found {
		found[i] = ip.Unmap()
	}
	slices.SortFunc(found, netip.Addr.Compare)
	for _, ip := range slices.Compact(found) {
		list = append(list, Instance{Address: net.JoinHostPort(ip.String(), port)})
	}
	return list
}

// instancesOfSRV returns the instances that records name, those of the best priority only:
// the others are for when these are gone, which DNS does not say.
func instancesOfSRV(records []*net.SRV) (list []Instance) {
	best, weighted := uint16(0xffff), false
	for _, record := range records {
		if usableSRV(record) {
			best = min(best, record.Priority)
		}
	}
	for _, record := range records {
		weighted = weighted || usableSRV(record) && record.Priority == best && record.Weight > 0
	}
	for _, record := range records {
		if !usableSRV(record) || record.Priority != best {
			continue
		}
		address := net.JoinHostPort(strings.TrimSuffix(record.Target, "."), strconv.Itoa(int(record.Port)))
		instance := Instance{Address: address}
		if weighted {
			instance.Weight = max(int(record.Weight), 1) // 0 is for few calls, not for none.
		}
		list = append(list, instance)
	}
	slices.SortFunc(list, func(a, b Instance) int { return strings.Compare(a.Address, b.Address) })
	return slices.CompactFunc(list, func(a, b Instance) bool { return a.Address == b.Address })
}

// usableSRV reports whether a record names a host: "." says that there is none.
func usableSRV(record *net.SRV) bool {
	host := strings.TrimSuffix(record.Target, ".")
	return record.Port != 0 && checkHost(host) == nil
}
