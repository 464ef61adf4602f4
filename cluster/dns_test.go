package cluster_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// zone answers questions of DNS.
type zone struct {
	mu      sync.Mutex
	ips     []string
	records []*net.SRV
	err     error
	asked   int
}

func (z *zone) set(change func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	change()
}

// LookupNetIP is that of net.Resolver.
func (z *zone) LookupNetIP(_ context.Context, network, host string) (found []netip.Addr, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.asked++; z.err != nil || network != "ip" || host != "orders.example" {
		return nil, z.err
	}
	for _, ip := range z.ips {
		found = append(found, netip.MustParseAddr(ip))
	}
	return found, nil
}

// LookupSRV is that of net.Resolver.
func (z *zone) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if service+proto != "" || name != "_orders._tcp.example" {
		return "", nil, errors.New("another name was asked for")
	}
	return "", z.records, z.err
}

func dnsOf(t *testing.T, name string, z *zone) *cluster.DNS {
	t.Helper()
	d, err := cluster.NewDNS(cluster.DNSConfig{Name: name, Resolver: z})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDNS_Addresses: a list that changes is delivered after the refresh, one that does not
// is not, and what is no answer leaves the last one.
func TestDNS_Addresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noHost := &net.DNSError{Err: "no such host", IsNotFound: true}
		z := &zone{err: noHost}
		w := watching(t, dnsOf(t, "orders.example:80", z))
		time.Sleep(time.Minute)
		synctest.Wait()
		w.expect(t, "no list")
		if told := w.told(); len(told) < 30 || !strings.Contains(told[0], "no such host") {
			t.Errorf("reported %d times: %q", len(told), told)
		}
		z.set(func() { z.err, z.ips = nil, []string{"10.0.0.2", "::ffff:10.0.0.1", "fd00::1", "10.0.0.1"} })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		w.expect(t, "10.0.0.1:80 10.0.0.2:80 [fd00::1]:80")
		z.set(func() { slices.Reverse(z.ips); z.asked = 0 })
		time.Sleep(10 * limits.DNSRefresh)
		synctest.Wait()
		if w.count() != 1 || z.asked < 8 || z.asked > 12 {
			t.Errorf("%d lists, asked %d times", w.count(), z.asked)
		}
		for _, err := range []error{noHost, errors.New("server misbehaving"), nil} {
			z.set(func() { z.err, z.ips = err, nil })
			time.Sleep(3 * limits.DNSRefresh)
			synctest.Wait()
			if w.expect(t, "10.0.0.1:80 10.0.0.2:80 [fd00::1]:80"); len(w.told()) < 2 {
				t.Errorf("%v was not reported", err)
			}
		}
		z.set(func() { z.err, z.ips = nil, []string{"10.0.0.3"} })
		time.Sleep(2 * limits.DNSRefresh)
		synctest.Wait()
		w.expect(t, "10.0.0.3:80")
	})
}

// TestDNS_Records: SRV records name hosts, ports and weights; the best priority counts.
func TestDNS_Records(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := func(priority, weight, port uint16, target string) *net.SRV {
			return &net.SRV{Priority: priority, Weight: weight, Port: port, Target: target}
		}
		z := &zone{records: []*net.SRV{
			record(2, 1, 80, "spare.example."), record(1, 30, 81, "b.example."), record(1, 0, 80, "a.example."), record(0, 1, 80, "."),
		}}
		w := watching(t, dnsOf(t, "_orders._tcp.example", z))
		synctest.Wait()
		w.expect(t, "a.example:80 b.example:81")
		if list := w.lists[0]; list[0].Weight != 1 || list[1].Weight != 30 {
			t.Errorf("weights: %+v", list)
		}
		z.set(func() { z.records = []*net.SRV{record(1, 0, 80, "a.example."), record(1, 0, 81, "b.example.")} })
		time.Sleep(2 * limits.DNSRefresh)
		synctest.Wait()
		if list := w.lists[1]; list[0].Weight != 0 || list[1].Weight != 0 {
			t.Errorf("without weights: %+v", list)
		}
		z.set(func() { z.records = []*net.SRV{record(0, 1, 80, ".")} })
		time.Sleep(2 * limits.DNSRefresh)
		synctest.Wait()
		if told := w.told(); w.count() != 2 || len(told) == 0 {
			t.Errorf("that there is no host: %d lists, reported %q", w.count(), told)
		}
	})
}

// TestDNS_RecordsAndAnError: an answer of which a part makes no sense has a list, and what is
// wrong with the rest is reported, each time; if nothing is left it says that too.
func TestDNS_RecordsAndAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		malformed := &net.DNSError{Err: "DNS response contained records which contain invalid names", Name: "_orders._tcp.example", Server: "10.0.0.53:53"}
		z := &zone{err: malformed, records: []*net.SRV{{Target: "a.example.", Port: 80}}}
		w := watching(t, dnsOf(t, "_orders._tcp.example", z))
		synctest.Wait()
		w.expect(t, "a.example:80")
		left := "dns: records of _orders._tcp.example are left out: " + malformed.Error()
		if told := w.told(); len(told) != 1 || told[0] != left || !strings.Contains(left, "10.0.0.53:53") {
			t.Errorf("reported %q, want %q", told, left)
		}
		time.Sleep(10 * limits.DNSRefresh)
		synctest.Wait()
		if told := w.told(); len(told) < 8 || len(told) > 12 || w.count() != 1 {
			t.Errorf("later: %d lists, reported %q", w.count(), told)
		}
		z.set(func() { z.records[0].Target = "." })
		time.Sleep(2 * limits.DNSRefresh)
		synctest.Wait()
		w.expect(t, "a.example:80")
		if told := w.told(); len(told) == 0 || !strings.Contains(told[len(told)-1], "has no SRV record that names a host") || !strings.Contains(told[len(told)-1], malformed.Error()) {
			t.Errorf("that nothing is left: reported %q", told)
		}
		z.set(func() { z.err, z.records = nil, []*net.SRV{{Target: "b.example.", Port: 80}} })
		time.Sleep(2 * limits.DNSRefresh)
		synctest.Wait()
		w.told()
		time.Sleep(2 * limits.DNSRefresh)
		synctest.Wait()
		if w.expect(t, "b.example:80"); len(w.told()) != 0 {
			t.Error("problems were reported although there are none")
		}
	})
}

func TestDNS_RefusesBadConfigs(t *testing.T) {
	for name, want := range map[string]string{
		"": "neither host:port", "a": "neither host:port", ":80": "the host is empty", "a:http": "not a number", "a:65536": "not a number",
		"_a.b": "is not _service._proto.domain", "_a._tcp": "is not _service._proto.domain", "_._tcp.b": "is not _service._proto.domain",
		"_a._tcp.b c": "cannot be in a name", strings.Repeat("x", 256) + ":1": "a name of 256 bytes (limit 255)",
	} {
		if _, err := cluster.NewDNS(cluster.DNSConfig{Name: name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	if _, err := cluster.NewDNS(cluster.DNSConfig{Name: "a:1", Refresh: 5}); err == nil || !strings.Contains(err.Error(), "was a unit forgotten") {
		t.Error(err)
	}
}

// FuzzSRV: any records: hosts and ports that can be dialled, each once, of one priority.
func FuzzSRV(f *testing.F) {
	f.Add("a.example.", "b", uint16(1), uint16(2), uint16(80), uint16(0))
	f.Add(".", "", uint16(0), uint16(0), uint16(0), uint16(9))
	f.Add("a b", "x/y\x00", uint16(65535), uint16(0), uint16(1), uint16(1))
	f.Fuzz(func(t *testing.T, first, second string, priority, other, port, weight uint16) {
		list := cluster.InstancesOfSRV([]*net.SRV{
			{Target: first, Port: port, Priority: priority, Weight: weight}, {Target: second, Port: port, Priority: other, Weight: weight},
			{Target: first, Port: port, Priority: priority},
		})
		if len(list) > 2 {
			t.Fatalf("%d instances of two hosts", len(list))
		}
		for _, instance := range list {
			host, _, err := net.SplitHostPort(instance.Address)
			if err != nil || host == "" || port == 0 || strings.ContainsAny(host, " /\x00\n") || instance.Weight < 0 {
				t.Fatalf("%+v", instance)
			}
		}
	})
}
