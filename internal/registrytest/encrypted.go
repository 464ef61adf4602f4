package registrytest

import (
	"crypto/tls"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/testservers"
)

// encrypted has a server that wants certificates of its clients, before and after a
// restart.
func encrypted(t *testing.T, k Kind) {
	files, encryption, err := testservers.NewTLSFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := k.run(t, &files)
	registry := k.openEncrypted(t, server.Address, Hasty(), encryption)
	list := Addresses(few)
	for _, address := range list {
		Announce(t, registry, address)
	}
	found := Look(t, registry)
	found.Know(t, list...)
	server.Kill()
	Start(t, server)
	Announce(t, registry, Newcomer)
	found.Know(t, append(slices.Clone(list), Newcomer)...)
	found.Kept(t, few)

	for name, encryption := range map[string]*tls.Config{
		"without a certificate": {RootCAs: encryption.RootCAs},
		"to a stranger":         {Certificates: encryption.Certificates},
		"in plain text":         nil,
	} {
		stranger := k.openEncrypted(t, server.Address, Hasty(), encryption)
		if _, err := stranger.Register(Bounded(t), Service, cluster.Instance{Address: "10.0.0.1:80"}); err == nil {
			t.Errorf("announced %s", name)
		}
	}
}
