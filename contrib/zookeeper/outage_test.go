package zookeeper_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/contrib/zookeeper"
)

// The tests of this file do to a real ZooKeeper what happens to registries, while instances
// are announced and looked up. What must hold in each: the last good list stays, and when
// ZooKeeper is back everybody is announced again.

const servers = 20

// fleet announces some instances, and looks them up by another connection.
func fleet(t *testing.T, servers int, announcers, clients string) (*zookeeper.Registry, *lookups, []string) {
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
	t.Logf("everybody was known after %v", time.Since(begin))
	// The numbers of changes begin anew: who has seen more of them is refused.
	announce(t, registry, "10.9.9.9:8888")
	found.know(t, append(slices.Clone(list), "10.9.9.9:8888"))
	found.kept(t, servers)
}

func TestOutage_EmptiedByHand(t *testing.T) {
	t.Parallel()
	server := real(t)
	registry, found, list := fleet(t, servers, server.Address, server.Address)
	operator := tool(t, server.Address)
	for _, address := range list {
		// It may be there again at once.
		if err := operator.Delete(path+"/"+address, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	eventually(t, "everybody is announced again", func() bool { return keys(t, operator) == servers })
	if took := time.Since(begin); took > lease+slack {
		t.Errorf("it took %v, longer than a lease", took)
	}
	// Not one for each that was made: who gave up on a request finds what came of it.
	if n := registry.Stats().Announced; n <= servers {
		t.Errorf("%d announcements", n)
	}
	found.know(t, list)
	found.kept(t, servers)
}

// TestOutage_ProcessBefore has the node of an address belong to a session that is about to
// expire, as when a process was killed and another one took its place.
func TestOutage_ProcessBefore(t *testing.T) {
	t.Parallel()
	server := real(t)
	behind := network(t, server)
	before := open(t, hasty(behind.Address))
	list := addresses(1)
	announce(t, before, list[0])
	behind.Darken()
	registry := open(t, hasty(server.Address))
	registration := announce(t, registry, list[0])
	if n := registry.Stats().TakenOver; n != 1 {
		t.Errorf("%d nodes taken over", n)
	}
	found := look(t, registry)
	found.know(t, list)
	operator := tool(t, server.Address)
	pass(t, lease+lease/2)
	if n := keys(t, operator); n != 1 {
		t.Errorf("%d nodes when the session before has expired", n)
	}
	found.kept(t, 1)
	if err := registration.Withdraw(bounded(t)); err != nil {
		t.Error(err)
	}
	eventually(t, "it is withdrawn", func() bool { return keys(t, operator) == 0 })
}

// TestOutage_TwoOfOneAddress: two processes that announce the same address do not keep
// ZooKeeper busy with that.
func TestOutage_TwoOfOneAddress(t *testing.T) {
	t.Parallel()
	server := real(t)
	list := addresses(1)
	one, other := open(t, hasty(server.Address)), open(t, hasty(server.Address))
	announce(t, one, list[0])
	announce(t, other, list[0])
	pass(t, lease)
	if n := one.Stats().TakenOver + other.Stats().TakenOver; n < 2 || n > 30 {
		t.Errorf("taken over %d times", n)
	}
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
	// The client pauses for a second before each of two connections: the old session is
	// refused, and then there is a new one.
	if took := time.Since(begin); took > lease+3*time.Second+slack {
		t.Errorf("it took %v", took)
	}
	input.Close()
	if err := announcer.Wait(); err != nil {
		t.Error(err)
	}
	if n := keys(t, operator); n != 0 {
		t.Errorf("%d keys are left when it has ended", n)
	}
}

// TestOutage_Partition cuts servers, and then clients, off from ZooKeeper, so that connections
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

// TestOutage_Slow has a ZooKeeper that answers late, and then too late for every request.
func TestOutage_Slow(t *testing.T) {
	t.Parallel()
	server := real(t)
	before := network(t, server)
	before.Slow(50 * time.Millisecond)
	_, found, list := fleet(t, 3, before.Address, before.Address)
	operator := tool(t, server.Address)
	before.Slow(3 * time.Second)
	pass(t, lease)
	before.Restore()
	eventually(t, "everybody is known", func() bool { return keys(t, operator) == 3 })
	found.know(t, list)
	found.kept(t, 3)
}

// TestOutage_Hostile puts nodes among the instances that are none, too long or lie.
func TestOutage_Hostile(t *testing.T) {
	t.Parallel()
	server := real(t)
	registry, _, list := fleet(t, 2, server.Address, server.Address)
	operator := tool(t, server.Address)
	values := map[string]string{
		"a": `{"Weight":1}`, "10.0.0.1:0": `{"Weight":1}`, "10.0.0.2:1": "", "10.0.0.3:1": "{",
		"10.0.0.4:1": strings.Repeat("[", 5000), "10.0.0.5:1": strings.Repeat("x", 900_000),
		"10.0.0.6:1": `{"Weight":1e99}`, "10.0.0.7:1": `[]`, "10.0.0.9:99999": `{}`, "x y:1": `{}`,
		"10.8.8.8:1": `{"Weight":-7,"Tags":{"zone":"west"}}`,
	}
	for name, value := range values {
		if _, err := operator.Create(path+"/"+name, []byte(value), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(name, err)
		}
	}
	want := append(slices.Clone(list), "10.8.8.8:1")
	second := open(t, hasty(server.Address))
	found := look(t, second)
	found.know(t, want)
	if broken := second.Stats().BrokenValues; broken < 10 {
		t.Errorf("%d broken nodes", broken)
	}
	// One that becomes sound is seen, and one that breaks is left out.
	if _, err := operator.Set(path+"/10.0.0.3:1", []byte(`{"Weight":3}`), -1); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Set(path+"/10.8.8.8:1", []byte("}"), -1); err != nil {
		t.Fatal(err)
	}
	announce(t, registry, "10.9.9.9:8888")
	found.know(t, append(slices.Clone(list), "10.0.0.3:1", "10.9.9.9:8888"))
}

func TestOutage_Thousand(t *testing.T) {
	t.Parallel()
	server := real(t)
	operator := tool(t, server.Address)
	list := addresses(1000)
	each := func(what func(address string) any) {
		t.Helper()
		for part := range slices.Chunk(list, 100) {
			var requests []any
			for _, address := range part {
				requests = append(requests, what(path+"/"+address))
			}
			if _, err := operator.Multi(requests...); err != nil {
				t.Fatal(err)
			}
		}
	}
	create := func(node string) any {
		return &zk.CreateRequest{Path: node, Data: []byte(`{"Weight":10,"Tags":null}`), Acl: zk.WorldACL(zk.PermAll)}
	}
	if _, err := operator.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	each(create)
	config := hasty(server.Address)
	config.DeliverInterval, config.HoldTime = 200*time.Millisecond, -1
	begin := time.Now()
	registry := open(t, config)
	found := look(t, registry)
	found.know(t, list)
	t.Logf("1000 instances were known after %v", time.Since(begin))
	for range 3 {
		each(func(node string) any { return &zk.DeleteRequest{Path: node, Version: -1} })
		each(create)
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

// TestOutage_CloseDuring closes everything while ZooKeeper is away: nothing waits for long.
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
	if _, err := registry.Register(bounded(t), service, cluster.Instance{Address: "10.9.9.9:8888"}); !errors.Is(err, zookeeper.ErrClosed) {
		t.Error(err)
	}
	resolver, err := registry.Resolver(service)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolver.Resolve(t.Context(), func([]cluster.Instance) {}); !errors.Is(err, zookeeper.ErrClosed) {
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
