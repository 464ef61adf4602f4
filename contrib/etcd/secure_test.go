package etcd_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/contrib/etcd"
	"github.com/fulmar-rpc/fulmar/internal/registrytest"
	"github.com/fulmar-rpc/fulmar/internal/testservers"
)

const password = "correct horse"

// TestSecure_PasswordAndRestart has an etcd that wants passwords: its tokens do not
// survive its restart, and a Registry that is made while it is away connects later.
func TestSecure_PasswordAndRestart(t *testing.T) {
	t.Parallel()
	server := registrytest.Run(t, newServer)
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

// TestSecure_TLS has an etcd that wants certificates of its clients.
func TestSecure_TLS(t *testing.T) {
	t.Parallel()
	files, config := certificates(t)
	server := registrytest.Run(t, func(folder string) (*testservers.Server, error) { return testservers.NewEtcd(folder, &files) })
	with := hasty(server.Address)
	with.TLS = config
	registry := registrytest.Open(t, etcd.New, with)
	list := registrytest.Addresses(2)
	for _, address := range list {
		registrytest.Announce(t, registry, address)
	}
	registrytest.Look(t, registry).Know(t, list...)

	with.TLS = &tls.Config{RootCAs: config.RootCAs}
	stranger := registrytest.Open(t, etcd.New, with)
	if _, err := stranger.Register(registrytest.Bounded(t), registrytest.Service, cluster.Instance{Address: "10.0.0.1:80"}); err == nil {
		t.Error("announced without a certificate")
	}
}

// certificates makes an authority and one certificate for both sides.
func certificates(t *testing.T) (testservers.TLSFiles, *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fulmar test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	certificate, secret := filepath.Join(folder, "certificate.pem"), filepath.Join(folder, "key.pem")
	for name, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: der}, secret: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.LoadX509KeyPair(certificate, secret)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return testservers.TLSFiles{Certificate: certificate, Key: secret, ClientAuthority: certificate},
		&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
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
