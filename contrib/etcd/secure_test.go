package etcd_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/contrib/etcd"
	"github.com/fulmar-rpc/fulmar/internal/registrytest"
)

const password = "correct horse"

// TestSecure_PasswordAndRestart has an etcd that wants passwords: its tokens do not
// survive its restart, and a Registry that is made while it is away connects later.
func TestSecure_PasswordAndRestart(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	client := tool(t, server.Address)
	if _, err := client.UserAdd(registrytest.Bounded(t), "root", password); err != nil {
		t.Fatal(err)
	}
	if _, err := client.UserGrantRole(registrytest.Bounded(t), "root", "root"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AuthEnable(registrytest.Bounded(t)); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	config := hasty(server.Address)
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	config.Username, config.Password = "root", "wrong"
	wrong := registrytest.Open(t, etcd.New, config)
	if _, err := wrong.Register(registrytest.Bounded(t), registrytest.Service, cluster.Instance{Address: "10.0.0.1:80"}); err == nil {
		t.Error("announced with a wrong password")
	} else if strings.Contains(err.Error(), "wrong") && strings.Contains(err.Error(), "Password") {
		t.Error(err)
	}
	config.Password = password
	registry := registrytest.Open(t, etcd.New, config)
	list := registrytest.Addresses(3)
	for _, address := range list {
		registrytest.Announce(t, registry, address)
	}
	found := registrytest.Look(t, registry)
	found.Know(t, list...)

	server.Kill()
	late := registrytest.Open(t, etcd.New, config)
	lateFound := registrytest.Look(t, late)
	registrytest.Pass(registrytest.Lease / 2)
	registrytest.Start(t, server)
	lateFound.Know(t, list...)
	registrytest.Announce(t, registry, registrytest.Newcomer)
	found.Know(t, append(list, registrytest.Newcomer)...)
	registrytest.Pass(registrytest.Lease + registrytest.Lease/2)
	found.Kept(t, 3)
	config.Username, config.Password = "root", password
	check := registrytest.Open(t, etcd.New, config)
	if n := len(firstList(t, check, registrytest.Service)); n != 4 {
		t.Errorf("%d instances are left after another lease", n)
	}
	late.Close()
	registry.Close()
	if strings.Contains(log.String(), password) {
		t.Error("the log has the password")
	}
}

func TestConfig_ReportsEverything(t *testing.T) {
	if err := (etcd.Config{Endpoints: []string{"10.0.0.1:2379", "https://etcd.internal:2379"}}).Validate(); err != nil {
		t.Error(err)
	}
	err := etcd.Config{
		Endpoints: []string{"10.0.0.1"}, Username: "x", Prefix: "a\x00", TTL: time.Millisecond, MaxPolicyBytes: -1,
		Common: registries.Common{RequestTimeout: -1},
	}.Validate()
	for _, field := range []string{"Endpoints", "Username", "Prefix", "TTL", "MaxPolicyBytes", "RequestTimeout"} {
		if err == nil || !strings.Contains(err.Error(), "etcd config: "+field+": ") {
			t.Errorf("nothing is said of %s: %v", field, err)
		}
	}
	if _, err := etcd.New(etcd.Config{}); err == nil {
		t.Error("a Registry without endpoints was made")
	}
}
