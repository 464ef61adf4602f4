package machine

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"testing"
)

// wantedVariable tells the inner process what its test wants.
const wantedVariable = "FULMAR_TEST_WANTED"

// insideMain is what the test program does in the namespace that
// the tests below ask for. Its exit status is its report.
func insideMain() {
	if err := checkInside(); err != nil {
		fmt.Fprintln(os.Stderr, "inside:", err)
		os.Exit(1)
	}
}

func checkInside() error {
	network, done, err := Isolate(context.Background(), os.Getenv(wantedVariable))
	if err != nil || done {
		return fmt.Errorf("done %v, %v, want to go on", done, err)
	}
	if !network.Isolated || network.Warning != "" || !slices.Contains([]string{"cubic", "reno"}, network.CongestionControl) {
		return fmt.Errorf("network %+v, want a namespace with cubic or reno", network)
	}
	interfaces, err := net.Interfaces()
	if err != nil || len(interfaces) == 0 || interfaces[0].Name != "lo" || interfaces[0].Flags&net.FlagUp == 0 {
		return fmt.Errorf("interfaces %+v, %v, want lo switched on", interfaces, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	accepted, err := listener.Accept()
	if err != nil {
		return err
	}
	defer accepted.Close()
	if _, err := io.WriteString(conn, "x"); err != nil {
		return err
	}
	_, err = io.ReadFull(accepted, make([]byte, 1))
	return err
}

func TestIsolate_HasItsOwnNetwork(t *testing.T) {
	const wanted = "none-such,cubic,reno"
	t.Setenv(wantedVariable, wanted)
	network, done, err := Isolate(t.Context(), wanted)
	if !done && network.Warning != "" && err == nil {
		t.Skip(network.Warning)
	}
	if err != nil || !done {
		t.Errorf("done %v, %v, want the inner process to end well", done, err)
	}
}

// A namespace that cannot be set up is of no use; then the benchmark goes on
// without, and says why.
func TestIsolate_FallsBack(t *testing.T) {
	t.Setenv(wantedVariable, "none-such")
	network, done, err := Isolate(t.Context(), "none-such")
	if err != nil || done || network.Isolated || network.Warning == "" {
		t.Errorf("%+v, done %v, %v, want the machine's own network with a warning", network, done, err)
	}
}

func TestPlain_DescribesTheMachine(t *testing.T) {
	network := Plain("it was not asked for")
	if network.Isolated || network.Warning == "" || network.CongestionControl == "" {
		t.Errorf("%+v does not describe the machine's own network", network)
	}
}
