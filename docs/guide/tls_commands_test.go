package guide_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestTLS_CommandsMakeCertificates runs the commands of the page, and calls a server with
// what they make as the page says.
func TestTLS_CommandsMakeCertificates(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("OpenSSL is not installed")
	}
	page, err := os.ReadFile("tls.md")
	if err != nil {
		t.Fatal(err)
	}
	_, commands, found := strings.Cut(string(page), "```sh\n")
	commands, _, closed := strings.Cut(commands, "```")
	if !found || !closed {
		t.Fatal("the page has no commands")
	}
	t.Chdir(t.TempDir())
	if out, err := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands).CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Address:      "localhost:0",
		TLS:          fulmar.ServerTLS{Files: fulmar.CertificateFiles{Certificate: "server.pem", Key: "server.key", Authorities: "clients.pem"}},
		Interceptors: []fulmar.UnaryInterceptor{onlyBilling},
	})
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, &shop{})
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	for name, want := range map[string]fulmar.Code{"billing": 0, "server": fulmar.PermissionDenied} {
		client, err := fulmar.NewClient(fulmar.ClientConfig{
			Target: "localhost" + address.String()[strings.LastIndexByte(address.String(), ':'):],
			TLS:    fulmar.ClientTLS{Files: fulmar.CertificateFiles{Certificate: name + ".pem", Key: name + ".key", Authorities: "servers.pem"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := testservice.NewEchoClient(client).Add(t.Context(), 1, 2, fulmar.Timeout(30*time.Second)); fulmar.CodeOf(err) != want {
			t.Errorf("%s: %v, want code %v", name, err, want)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
