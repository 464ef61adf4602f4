package contestant

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

// Contestant is what a program in Go gives to Main.
type Contestant struct {
	Name string
	// Unavailable says why it cannot take part, or is empty.
	Unavailable string
	// Modules are those whose versions belong to a result.
	Modules []string
	// Serve serves a case on the listener until ctx ends.
	Serve func(ctx context.Context, listener net.Listener, played Played) error
	// ServeAddress stands in place of Serve for libraries that listen by
	// themselves: on a network "tcp" or "unix". It calls ready with the address,
	// once clients can connect.
	ServeAddress func(ctx context.Context, network, address, name string, ready func(address string) error) error
	// Executed tells how many calls the server's handlers have executed, in cases
	// where callers cannot know. It may be nil, and is called concurrently.
	Executed func() uint64
	// Load connects to a server and returns what the case's callers do. It is nil
	// where a suite has one client for all.
	Load func(address string, played Played) (Load, error)
	// Repeat prepares what a case repeats where no calls are made. It is nil for
	// whoever has no such case.
	Repeat func(name string) (Repeat, error)
}

// Played is the case that a program was told to play.
type Played struct {
	Case string
	// Certificate is a file with a certificate for 127.0.0.1, which signs itself,
	// and its key: that of servers with TLS, which their clients trust. It is empty
	// in other cases.
	Certificate string
	// Idle is how many idle connections a case has that has any. 0 is as many as
	// its name says.
	Idle int
}

// Load is a client that is ready.
type Load struct {
	Calls []loadgen.Call
	Close func() error
	// Sent is set where calls have no replies: how many were made, asked when all
	// have ended. Those that the server's handlers have executed are what counts.
	Sent func() uint64
	// Messages is how many messages a call carries, where those are what is counted; else 0.
	Messages int64
	// Peak is how many of Calls find out in a closed loop what the server can do at
	// most, where the others would only wait. 0 means all.
	Peak int
	// Idle is how many connections fall silent after one call each, where that is
	// what a case is about: it measures their memory, and then all call at once.
	// Connect prepares the client of one of them; it is called concurrently.
	Idle    int
	Connect func(number int) (loadgen.Call, error)
}

// Main runs a program with the arguments that the runner gave it, and exits.
func Main(contestants ...Contestant) {
	if err := run(context.Background(), contestants, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "contestant:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, contestants []Contestant, arguments []string, in io.Reader, out io.Writer) error {
	if len(arguments) == 0 {
		return errors.New("want one of info, serve, load, repeat")
	}
	command, arguments := arguments[0], arguments[1:]
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // The error says it, and a runner has no use for the list.
	name := flags.String("contestant", "", "which contestant to be")
	var played Played
	flags.StringVar(&played.Case, "case", "", "which case to play")
	flags.StringVar(&played.Certificate, "certificate", "", "file with a certificate and its key, for cases with TLS")
	network := flags.String("network", "tcp", "what a server listens on: tcp or unix")
	profiles := flags.String("profiles", "", "folder for profiles of the processor time")
	address := flags.String("address", "", "where to listen (default: wherever is free), or where the server listens")
	descriptor := flags.Int("control", 0, "file descriptor on which clients ask servers about their process")
	flags.IntVar(&played.Idle, "idle", 0, "idle connections, in cases that have any (default: as many as the name says)")
	var options loadOptions
	options.flags(flags)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if command == "info" {
		return printEvent(out, Event{Info: info(contestants)})
	}
	chosen, err := choose(contestants, *name)
	if err != nil {
		return err
	}
	switch command {
	case "serve":
		endProfile, err := profile(*profiles, chosen.Name, played.Case, "server")
		if err != nil {
			return err
		}
		asked := answering(*descriptor, chosen.Executed)
		err = serve(ctx, chosen, endpoint{*network, *address}, played, in, out)
		return errors.Join(err, ended(asked), endProfile())
	case "load":
		endProfile, err := profile(*profiles, chosen.Name, played.Case, "client")
		if err != nil {
			return err
		}
		err = load(ctx, chosen, *address, played, options, openControl(*descriptor), out)
		return errors.Join(err, endProfile())
	case "repeat":
		return repeat(chosen, played.Case, options, out)
	}
	return fmt.Errorf("want one of info, serve, load, repeat (got %q)", command)
}

func choose(contestants []Contestant, name string) (Contestant, error) {
	var known []string
	for _, c := range contestants {
		if c.Name == name && c.Unavailable != "" {
			return Contestant{}, fmt.Errorf("%s is not available: %s", name, c.Unavailable)
		}
		if c.Name == name {
			return c, nil
		}
		known = append(known, c.Name)
	}
	return Contestant{}, fmt.Errorf("no contestant %q here (known: %s)", name, strings.Join(known, ", "))
}

func printEvent(out io.Writer, event Event) error {
	line, err := json.Marshal(event)
	if err != nil {
		return err
	}
	_, err = out.Write(append(line, '\n'))
	return err
}

// info looks versions up in what the go command wrote into the program.
func info(contestants []Contestant) []Info {
	built := map[string]string{}
	if read, ok := debug.ReadBuildInfo(); ok {
		for _, module := range read.Deps {
			built[module.Path] = module.Version
		}
	}
	var all []Info
	for _, c := range contestants {
		one := Info{Name: c.Name, Unavailable: c.Unavailable}
		for _, path := range c.Modules {
			if one.Versions == nil {
				one.Versions = map[string]string{}
			}
			one.Versions[path] = built[path]
		}
		all = append(all, one)
	}
	return all
}

// stopTimeout is how long a server may take to end. Nobody calls it any more;
// the runner has to get on.
const stopTimeout = 2 * time.Second

// endpoint is where a server listens.
type endpoint struct{ network, address string }

// withDefault returns an endpoint that no other process has. A Unix socket gets
// a name of Linux's abstract namespace, so that no file is left behind.
func (e endpoint) withDefault() (endpoint, error) {
	switch {
	case e.network != "tcp" && e.network != "unix":
		return e, fmt.Errorf("network %q (want tcp or unix)", e.network)
	case e.address != "":
	case e.network == "tcp":
		e.address = "127.0.0.1:0"
	default:
		e.address = fmt.Sprintf("@fulmar-bench-%d-%x", os.Getpid(), rand.Uint64())
	}
	return e, nil
}

// answering answers a client's questions meanwhile. It is nil if there is no
// descriptor, and holds one value when the client's end is closed.
func answering(descriptor int, executed func() uint64) <-chan error {
	if descriptor <= 0 {
		return nil
	}
	answered := make(chan error, 1)
	go func() { answered <- answerQuestions(os.NewFile(uintptr(descriptor), "control"), executed) }()
	return answered
}

// ended waits for answering, which a client that hangs may keep up.
func ended(answered <-chan error) error {
	if answered == nil {
		return nil
	}
	select {
	case err := <-answered:
		return err
	case <-time.After(stopTimeout):
		return nil
	}
}

// serve runs a server until the runner closes in.
func serve(ctx context.Context, c Contestant, at endpoint, played Played, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at, err := at.withDefault()
	if err != nil {
		return err
	}
	ready := func(address string) error { return printEvent(out, Event{Ready: &Ready{Address: address}}) }
	served := make(chan error, 1)
	if c.ServeAddress != nil {
		go func() { served <- c.ServeAddress(ctx, at.network, at.address, played.Case, ready) }()
	} else {
		listener, err := net.Listen(at.network, at.address)
		if err != nil {
			return err
		}
		go func() { served <- c.Serve(ctx, listener, played) }()
		// Connections that come before Serve accepts wait in the kernel.
		if err := ready(listener.Addr().String()); err != nil {
			return err
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, in)
		ended <- err
	}()
	select {
	case err := <-served:
		return errors.Join(errors.New("the server stopped by itself"), err)
	case err = <-ended:
	}
	cancel()
	select {
	case <-served:
	case <-time.After(stopTimeout):
	}
	return err
}

// loadOptions are the flags of the commands load and repeat.
type loadOptions struct {
	rate             float64
	warmUp, duration time.Duration
	server           int
	alone            bool // there is no server's process
	// turns are those of a closed loop.
	turns loadgen.Turns
}

func (o *loadOptions) flags(flags *flag.FlagSet) {
	flags.Float64Var(&o.rate, "rate", 0, "calls a second of an open loop; 0 is the closed loop")
	flags.DurationVar(&o.warmUp, "warm-up", 500*time.Millisecond, "time before the window")
	flags.DurationVar(&o.duration, "duration", time.Second, "length of the window")
	flags.DurationVar(&o.turns.Slice, "slice", 0, "how long a turn of a closed loop is that takes turns with others")
	flags.IntVar(&o.turns.Index, "turn", 0, "which of the turns is its own, from 0")
	flags.IntVar(&o.turns.Of, "turns", 0, "how many take turns (default: nobody)")
	flags.IntVar(&o.server, "server", 0, "process id of the server, whose processor time is read (default: this process)")
}

// failureMax is how much of an error's text goes into a report.
const failureMax = 500

// printable makes a text fit for a report.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	for len(text) > failureMax {
		runes := []rune(text)
		text = string(runes[:len(runes)/2])
	}
	return text
}
