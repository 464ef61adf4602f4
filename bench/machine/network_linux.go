package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolatedVariable marks the process that runs inside of the namespace, and
// noNamespace is how it ends if the namespace turns out to be of no use: some
// systems let anybody make one, but nobody set it up.
const (
	isolatedVariable = "FULMAR_BENCH_ISOLATED"
	noNamespace      = 75
)

const congestionControl = "/proc/sys/net/ipv4/tcp_congestion_control"

// Isolate runs this program again, with the same arguments, in a network
// namespace with a loopback device and one congestion control: the first of
// wanted, separated by commas, that the kernel allows there.
//
// It returns twice. In the outer process done is true, and err is how the inner
// one ended. In the inner process, and if there can be no namespace, done is
// false: go on there. The Network tells which of the two it is.
func Isolate(ctx context.Context, wanted string) (network Network, done bool, err error) {
	if os.Getenv(isolatedVariable) != "" {
		network, err := enter(wanted)
		if err != nil {
			fmt.Fprintln(os.Stderr, "network namespace:", err)
			os.Exit(noNamespace)
		}
		return network, false, nil
	}
	err = runIsolated(ctx)
	if !errors.Is(err, errNoNamespace) {
		return Network{}, true, err
	}
	return Plain(err.Error()), false, nil
}

// Inside tells whether this is the inner process of Isolate.
func Inside() bool { return os.Getenv(isolatedVariable) != "" }

// Plain describes the network of the machine itself. why says why there is no
// other.
func Plain(why string) Network {
	// What cannot be read stays empty.
	name, _ := currentCongestionControl()
	return Network{CongestionControl: name, Warning: "no network namespace of the benchmark's own: " + why}
}

var errNoNamespace = errors.New("it cannot be made")

// runIsolated runs this program in a namespace until it ends.
func runIsolated(ctx context.Context) error {
	command := inNamespace(ctx, unix.CLONE_NEWUSER|unix.CLONE_NEWNET)
	// Root inside of it is who started it outside: files keep their owner.
	command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	err := command.Start()
	if err != nil && os.Getuid() == 0 {
		// Where users may not make namespaces, root still may.
		command = inNamespace(ctx, unix.CLONE_NEWNET)
		err = command.Start()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNoNamespace, err)
	}
	err = command.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == noNamespace {
		return fmt.Errorf("%w: it was of no use", errNoNamespace)
	}
	return err
}

func inNamespace(ctx context.Context, flags uintptr) *exec.Cmd {
	command := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	command.Args[0] = os.Args[0]
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), isolatedVariable+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	// An interrupt lets the inner process end its children.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	return command
}

// enter sets up the namespace that this process has been started in.
func enter(wanted string) (Network, error) {
	if err := raiseLoopback(); err != nil {
		return Network{}, err
	}
	name, err := setCongestionControl(strings.Split(wanted, ","))
	return Network{Isolated: true, CongestionControl: name}, err
}

// raiseLoopback switches the loopback device on; a new namespace has it off.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback device: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback device: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("switching the loopback device on: %w", err)
	}
	return nil
}

func setCongestionControl(wanted []string) (string, error) {
	var refusals []error
	for _, name := range wanted {
		err := os.WriteFile(congestionControl, []byte(name), 0)
		if err == nil {
			return currentCongestionControl()
		}
		refusals = append(refusals, fmt.Errorf("congestion control %q: %w", name, err))
	}
	return "", errors.Join(refusals...)
}

func currentCongestionControl() (string, error) {
	text, err := os.ReadFile(congestionControl)
	return strings.TrimSpace(string(text)), err
}
