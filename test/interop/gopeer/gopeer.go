// Package gopeer is the command line of the peers that are written in Go: a
// server, or a client that checks a server. They are driven as python/peer.py
// is, and share its cases.
//
//	peer serve -transport framed
//	peer call -transport framed -port 4711 -case all
//
// serve prints one line of JSON with its port and serves on the loopback
// interface until its standard input ends, so that it never outlives who
// started it. call runs cases and prints one line of JSON each; its exit code is
// 1 if one differs.
package gopeer

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/fulmar-rpc/fulmar/test/interop/cases"
	"github.com/fulmar-rpc/fulmar/test/interop/notation"
)

// lifetime ends a peer that nobody ends.
const lifetime = 15 * time.Minute

var errDiffers = errors.New("a case differs")

// Peer is what a library does.
type Peer struct {
	// Flags adds the flags that only this library has; may be nil.
	Flags func(*flag.FlagSet)
	// Name returns the name of the peer in the cases, once flags are parsed.
	Name func() string
	// Serve serves on listener until stop is closed.
	Serve func(listener net.Listener, transport string, stop <-chan struct{}) error
	// Connect returns a client for the server at address.
	Connect func(address, transport string) (cases.Library, error)
	// Types is about the generated code.
	Types notation.Types
}

// Main runs the command and ends the process.
func Main(p Peer) {
	time.AfterFunc(lifetime, func() { os.Exit(3) })
	err := p.run(os.Args[1:])
	switch {
	case errors.Is(err, errDiffers):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(2)
	}
	os.Exit(0)
}

// options are the flags that all peers have.
type options struct {
	transport string
	address   string
	server    string
	cases     string
	only      string
	linger    bool
}

func (p Peer) run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("want serve or call")
	}
	var o options
	var port int
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	flags.StringVar(&o.transport, "transport", "framed", "how messages are framed")
	flags.IntVar(&port, "port", 0, "the port to call on the loopback interface")
	flags.StringVar(&o.server, "server", "fulmar", "what the server is, where servers may differ")
	flags.StringVar(&o.cases, "cases", "", "the file of cases")
	flags.StringVar(&o.only, "case", "all", "the case to run")
	flags.BoolVar(&o.linger, "linger", false, "keep the connections until standard input ends")
	if p.Flags != nil {
		p.Flags(flags)
	}
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	o.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	switch arguments[0] {
	case "serve":
		return p.serve(o)
	case "call":
		return p.call(o)
	}
	return fmt.Errorf("want serve or call (got %q)", arguments[0])
}

func (p Peer) serve(o options) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ready := map[string]any{"port": listener.Addr().(*net.TCPAddr).Port, "runtime": p.Name(), "transport": o.transport}
	if err := print(ready); err != nil {
		return err
	}
	stop := make(chan struct{})
	go func() {
		awaitEnd()
		close(stop)
	}()
	return p.Serve(listener, o.transport, stop)
}

func (p Peer) call(o options) error {
	file, err := cases.Load(o.cases)
	if err != nil {
		return err
	}
	library, err := p.Connect(o.address, o.transport)
	if err != nil {
		return err
	}
	runner := &cases.Runner{Library: library, Types: p.Types, Server: o.server, Unique: fmt.Sprintf("%s-%d", p.Name(), os.Getpid())}
	ran, failed := 0, 0
	for _, c := range file.Cases {
		if !c.TakesPart(p.Name(), o.server) || o.only != "all" && o.only != c.Name {
			continue
		}
		ran++
		outcome := cases.Outcome{Case: c.Name, OK: true}
		if err := runner.Run(c); err != nil {
			failed++
			outcome.OK, outcome.Detail = false, err.Error()
		}
		if err := print(outcome); err != nil {
			return err
		}
	}
	if o.linger {
		awaitEnd()
	}
	switch {
	case ran == 0:
		return fmt.Errorf("no case for %s is named %s", p.Name(), o.only)
	case failed > 0:
		return errDiffers
	}
	return nil
}

func print(line any) error { return json.NewEncoder(os.Stdout).Encode(line) }

// awaitEnd returns when standard input ends, however it does.
func awaitEnd() { _, _ = io.Copy(io.Discard, os.Stdin) }
