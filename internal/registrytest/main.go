package registrytest

import (
	"bufio"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/testservers"
)

// announcerVariable makes the test program one that announces an instance, so that a test
// can stop it as a process: its value is the address of the registry.
const announcerVariable = "FULMAR_TEST_ANNOUNCE"

// announcedLine is what it says when the instance is announced.
const announcedLine = "announced\n"

// Begin is what TestMain does first. It returns true in a process that a scenario has
// started, when that has done what it is there for: it announces an instance of the kind,
// says so on output, and withdraws it when input has something or ends.
func Begin(k Kind, input io.Reader, output io.Writer) (done bool, err error) {
	if address := os.Getenv(announcerVariable); address != "" {
		return true, announceUntil(k, address, input, output)
	}
	// More at a time than processors, unless it is said how many: they wait for leases.
	return false, flag.Set("test.parallel", "4")
}

func announceUntil(k Kind, address string, input io.Reader, output io.Writer) error {
	registry, err := k.Open(address, Hasty(), nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if _, err := registry.Register(ctx, Service, cluster.Instance{Address: Newcomer}); err != nil {
		return err
	}
	if _, err := io.WriteString(output, announcedLine); err != nil {
		return err
	}
	_, _ = input.Read(make([]byte, 1))
	return registry.Close()
}

// processPaused stops the process of a server for longer than its lease: it is forgotten,
// and back soon after it goes on.
func processPaused(t *testing.T, k Kind) {
	server := k.Run(t)
	operator := k.Operator(t, server.Address)
	announcer := exec.CommandContext(t.Context(), os.Args[0])
	announcer.Env = append(os.Environ(), announcerVariable+"="+server.Address)
	announcer.Stderr = t.Output()
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
	if line, err := bufio.NewReader(output).ReadString('\n'); line != announcedLine {
		t.Fatalf("it said %q, %v", line, err)
	}
	if n := operator.Count(); n != 1 {
		t.Errorf("%d instances are announced", n)
	}
	if err := testservers.Pause(announcer.Process); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "it is forgotten", func() bool { return operator.Count() == 0 })
	if err := testservers.Resume(announcer.Process); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	Eventually(t, "it is announced again", func() bool { return operator.Count() == 1 })
	k.inTime(t, begin, k.Reconnecting)
	input.Close()
	if err := announcer.Wait(); err != nil {
		t.Error(err)
	}
	if n := operator.Count(); n != 0 {
		t.Errorf("%d instances are left when it has ended", n)
	}
}
