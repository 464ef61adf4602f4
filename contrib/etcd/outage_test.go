package etcd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/contrib/etcd"
)

// The tests of this file do to a real etcd what happens to registries, while instances
// are announced and looked up. What must hold in each: the last good list stays, and when
// etcd is back everybody is announced again.

const servers = 20

// fleet announces some instances, and looks them up by another connection.
func fleet(t *testing.T, servers int, announcers, clients string) (*etcd.Registry, *lookups, []string) {
	t.Helper()
	registry := open(t, hasty(announcers))
	list := addresses(servers)
	for _, address := range list {
		announce(t, registry, address)
	}
	found := look(t, open(t, hasty(clients)))
	found.know(t, list)
	return registry, found, list
}

func TestOutage_KillAndRestart(t *testing.T) {
	t.Parallel()
	server := real(t)
	registry, found, list := fleet(t, servers, server.Address, server.Address)
	operator := tool(t, server.Address)
	server.Kill()
	pass(t, lease+lease/2)
	if !slices.Equal(found.addresses(), list) {
		t.Errorf("during the outage: %d instances", len(found.addresses()))
	}
	start(t, server)
	before := registry.Stats().Announced
	eventually(t, "everybody is known", func() bool { return keys(t, operator) == servers })
	// It has kept the leases: they go on living.
	pass(t, lease+lease/2)
	if n := keys(t, operator); n != servers {
		t.Errorf("%d keys after another two leases", n)
	}
	found.kept(t, servers)
	t.Logf("announced again after the restart: %d of %d", registry.Stats().Announced-before, servers)

	// A new one is seen after the outage: the watch lives.
	announce(t, registry, "10.9.9.9:8888")
	found.know(t, append(slices.Clone(list), "10.9.9.9:8888"))
}

func TestOutage_DataLost(t *testing.T) {
	t.Parallel()
	server := real(t)
	registry, found, list := fleet(t, servers, server.Address, server.Address)
	server.Kill()
	if err := server.Wipe(); err != nil {
		t.Fatal(err)
	}
	start(t, server)
	operator := tool(t, server.Address)
	begin := time.Now()
	eventually(t, "everybody is known", func() bool { return keys(t, operator) == servers })
	if took := time.Since(begin); took > lease+slack {
		t.Errorf("it took %v, longer than a lease", took)
	}
	// The revisions of etcd begin anew: a watch that waits for the old ones sees nothing.
	announce(t, registry, "10.9.9.9:8888")
	found.know(t, append(slices.Clone(list), "10.9.9.9:8888"))
	found.kept(t, servers)
}

func TestOutage_EmptiedByHand(t *testing.T) {
	t.Parallel()
	server := real(t)
	registry, found, list := fleet(t, servers, server.Address, server.Address)
	operator := tool(t, server.Address)
	if removed, err := operator.Delete(bounded(t), prefix, clientv3.WithPrefix()); err != nil || removed.Deleted != servers {
		t.Fatal(removed, err)
	}
	begin := time.Now()
	eventually(t, "everybody is announced again", func() bool { return keys(t, operator) == servers })
	if took := time.Since(begin); took > lease+slack {
		t.Errorf("it took %v, longer than a lease", took)
	}
	if registry.Stats().Repaired == 0 {
		t.Error("nobody counted what was repaired")
	}
	found.know(t, list)
	found.kept(t, servers)
}

func TestOutage_LeaseRevoked(t *testing.T) {
	t.Parallel()
	server := real(t)
	_, found, list := fleet(t, 3, server.Address, server.Address)
	operator := tool(t, server.Address)
	kept, err := operator.Get(bounded(t), prefix+list[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Revoke(bounded(t), clientv3.LeaseID(kept.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	found.know(t, []string{list[0], list[2]})
	found.know(t, list)
}

func TestOutage_Paused(t *testing.T) {
	t.Parallel()
	server := real(t)
	_, found, list := fleet(t, servers, server.Address, server.Address)
	operator := tool(t, server.Address)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	pass(t, lease+lease/2)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	pass(t, lease)
	eventually(t, "everybody is known", func() bool { return keys(t, operator) == servers })
	found.know(t, list)
	found.kept(t, servers)
}

// TestOutage_ProcessPaused stops the process of a server for longer than its lease: it is
// forgotten, and back soon after it goes on.
func TestOutage_ProcessPaused(t *testing.T) {
	t.Parallel()
	server := real(t)
	operator := tool(t, server.Address)
	announcer := exec.CommandContext(t.Context(), os.Args[0])
	announcer.Env = append(os.Environ(), announcerVariable+"="+server.Address)
	announcer.Stderr = os.Stderr
	input, err := announcer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := announcer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := announcer.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "announced\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
	if n := keys(t, operator); n != 1 {
		t.Errorf("%d instances are announced", n)
	}
	if err := announcer.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is forgotten", func() bool { return keys(t, operator) == 0 })
	if err := announcer.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	eventually(t, "it is announced again", func() bool { return keys(t, operator) == 1 })
	if took := time.Since(begin); took > lease+slack {
		t.Errorf("it took %v, longer than a lease", took)
	}
	input.Close()
	if err := announcer.Wait(); err != nil {
		t.Error(err)
	}
	if n := keys(t, operator); n != 0 {
		t.Errorf("%d keys are left when it has ended", n)
	}
}

// TestOutage_Partition cuts servers, and then clients, off from etcd, so that connections
// hang, until leases have expired.
func TestOutage_Partition(t *testing.T) {
	t.Parallel()
	server := real(t)
	before, behind := network(t, server), network(t, server)
	registry, found, list := fleet(t, servers, before.Address, behind.Address)
	operator := tool(t, server.Address)
	before.Darken()
	eventually(t, "the leases expire", func() bool { return keys(t, operator) == 0 })
	found.kept(t, servers)
	before.Restore()
	eventually(t, "everybody is announced again", func() bool { return keys(t, operator) == servers })
	found.know(t, list)
	// Not one for each that was made: who gave up on a request finds what came of it.
	if n := registry.Stats().Announced; n <= servers {
		t.Errorf("%d announcements", n)
	}

	behind.Darken()
	announce(t, registry, "10.9.9.9:8888")
	pass(t, lease)
	if !slices.Equal(found.addresses(), list) {
		t.Error("the list changed without a network")
	}
	behind.Restore()
	found.know(t, append(slices.Clone(list), "10.9.9.9:8888"))
}

// TestOutage_Compaction removes the revisions that a client that is cut off has not seen.
func TestOutage_Compaction(t *testing.T) {
	t.Parallel()
	server := real(t)
	behind := network(t, server)
	registry, found, list := fleet(t, 3, server.Address, behind.Address)
	operator := tool(t, server.Address)
	behind.Cut()
	left := announce(t, registry, "10.9.9.8:8888")
	if err := left.Withdraw(bounded(t)); err != nil {
		t.Fatal(err)
	}
	announce(t, registry, "10.9.9.9:8888")
	now, err := operator.Get(bounded(t), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Compact(bounded(t), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	behind.Restore()
	found.know(t, append(slices.Clone(list), "10.9.9.9:8888"))
}

// TestOutage_Slow has an etcd that answers late, and then too late for every request.
func TestOutage_Slow(t *testing.T) {
	t.Parallel()
	server := real(t)
	before := network(t, server)
	before.Slow(50 * time.Millisecond)
	registry, found, list := fleet(t, 3, before.Address, before.Address)
	operator := tool(t, server.Address)
	before.Slow(3 * time.Second)
	eventually(t, "requests fail", func() bool { return registry.Stats().BeatFailures > 0 })
	before.Restore()
	eventually(t, "everybody is known", func() bool { return keys(t, operator) == 3 })
	found.know(t, list)
	found.kept(t, 3)
}

// TestOutage_Hostile puts values among the instances that are none, too long or lie.
func TestOutage_Hostile(t *testing.T) {
	t.Parallel()
	server := real(t)
	registry, _, list := fleet(t, 2, server.Address, server.Address)
	operator := tool(t, server.Address)
	values := map[string]string{
		"a": "", "b": "{", "c": "null", "d": `{"network":"tcp","address":"10.0.0.1"}`,
		"e": `{"network":"icmp","address":"10.0.0.1:1"}`, "f": `{"network":"tcp","address":"10.0.0.1:0"}`,
		"g": `{"network":"tcp","address":"\u001b[2J:80"}`, "h": strings.Repeat("[", 5000),
		"i": strings.Repeat("x", 1_400_000), "j": `{"network":"tcp","address":"x:1","weight":1e99}`,
		"other/10.0.0.1:80": `{"network":"tcp","address":"10.7.7.7:1"}`,
		"10.8.8.8:1":        `{"network":"tcp","address":"10.8.8.8:1","weight":-7,"tags":{"zone":"west"}}`,
	}
	for key, value := range values {
		if _, err := operator.Put(bounded(t), prefix+key, value); err != nil {
			t.Fatal(key, err)
		}
	}
	want := append(slices.Clone(list), "10.8.8.8:1")
	// By a list, and by a watch.
	second := open(t, hasty(server.Address))
	found := look(t, second)
	found.know(t, want)
	if broken := second.Stats().BrokenValues; broken < 10 {
		t.Errorf("%d broken values", broken)
	}
	for key, value := range values {
		if _, err := operator.Put(bounded(t), prefix+key+"-", value); err != nil {
			t.Fatal(key, err)
		}
	}
	eventually(t, "the watch has seen them", func() bool { return second.Stats().BrokenValues >= 20 })
	announce(t, registry, "10.9.9.9:8888")
	found.know(t, append(slices.Clone(want), "10.9.9.9:8888"))
	if i := slices.IndexFunc(found.last, func(i cluster.Instance) bool { return i.Address == "10.8.8.8:1" }); found.last[i].Weight != 0 || found.last[i].Zone != "west" {
		t.Errorf("%+v", found.last[i])
	}
}

func TestOutage_Thousand(t *testing.T) {
	t.Parallel()
	server := real(t)
	operator := tool(t, server.Address)
	list := addresses(1000)
	write := func(list []string) {
		t.Helper()
		for part := range slices.Chunk(list, 100) {
			var puts []clientv3.Op
			for _, address := range part {
				puts = append(puts, clientv3.OpPut(prefix+address, fmt.Sprintf(`{"network":"tcp","address":%q,"weight":10,"tags":null}`, address)))
			}
			if _, err := operator.Txn(bounded(t)).Then(puts...).Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(list)
	config := hasty(server.Address)
	config.DeliverInterval, config.HoldTime = 200*time.Millisecond, -1
	begin := time.Now()
	registry := open(t, config)
	found := look(t, registry)
	found.know(t, list)
	t.Logf("1000 instances were known after %v", time.Since(begin))

	// All of them go and come, ten times: few lists become of that.
	for range 10 {
		if _, err := operator.Delete(bounded(t), prefix, clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		write(list)
	}
	found.know(t, list)
	most := int64(time.Since(begin)/config.DeliverInterval) + 2
	if n := registry.Stats().Delivered; n > most {
		t.Errorf("%d lists, want at most %d", n, most)
	}

	config.MaxInstances = 100
	few := open(t, config)
	look(t, few).know(t, list[:100])
	if few.Stats().LeftOut == 0 {
		t.Error("nobody was told of the instances that were left out")
	}
}

// TestOutage_CloseDuring closes everything while etcd is away: nothing waits for long.
func TestOutage_CloseDuring(t *testing.T) {
	t.Parallel()
	server := real(t)
	registry, found, _ := fleet(t, servers, server.Address, server.Address)
	other := open(t, hasty(server.Address))
	alone := announce(t, other, "10.9.9.9:8888")
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := alone.Withdraw(ctx); err == nil {
		t.Error("withdrawn from nowhere")
	}
	begin := time.Now()
	if err := registry.Close(); err == nil {
		t.Error("Close does not say that nobody was withdrawn")
	}
	if took := time.Since(begin); took > patience/4 {
		t.Errorf("Close took %v", took)
	}
	found.stop()
	if err := <-found.ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	} else {
		found.ended <- err
	}
	if _, err := registry.Register(bounded(t), service, cluster.Instance{Address: "10.9.9.9:8888"}); !errors.Is(err, etcd.ErrClosed) {
		t.Error(err)
	}
	resolver, err := registry.Resolver(service)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolver.Resolve(t.Context(), func([]cluster.Instance) {}); !errors.Is(err, etcd.ErrClosed) {
		t.Error(err)
	}
	if err := registry.Close(); err != nil {
		t.Error(err)
	}
}

// pass lets time pass: outages last as long as leases live.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}
