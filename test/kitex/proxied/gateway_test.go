package proxied_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// startGateway builds the program of examples/gateway, starts it before two shops and
// returns where it listens. It ends with the test.
func startGateway(t *testing.T, europe, world string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "gateway")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..", "..", "examples", "gateway")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("examples/gateway does not build: %v\n%s", err, output)
	}
	command := exec.Command(program, "-listen", "127.0.0.1:0", "-europe", europe, "-world", world)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the gateway: %v", err)
		}
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 3 {
		t.Fatalf("the gateway prints %q, %v", line, err)
	}
	return words[2]
}

// TestGateway_OfTheExampleIsBetweenKitexAndKitex has a client of Kitex before the program of
// examples/gateway and two servers of Kitex behind it. With Apache Thrift it is in test/apache.
func TestGateway_OfTheExampleIsBetweenKitexAndKitex(t *testing.T) {
	europe, world := startServer(t, "shop-server", "europe"), startServer(t, "shop-server", "world")
	address := startGateway(t, europe, world)
	compare(t, outcomes(t, "shop-client", address), []string{
		`{"Case":"europe","Reply":"1: europe sells acme 1 lines for 750"}`,
		`{"Case":"world","Reply":"2: world sells acme 1 lines for 750"}`,
		`{"Case":"forged tenant","Reply":"3: europe sells acme 1 lines for 750"}`,
		`{"Case":"long","Reply":"4: world sells globex 10000 lines for 99990000"}`,
		`{"Case":"refused","Reply":"refused: nothing ordered in europe"}`,
		`{"Case":"no tenant","Exception":6,"Text":"no tenant"}`,
	})
}
