package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// roleVariable has what a process that the command starts is to do, as JSON.
const roleVariable = "FULMAR_CHAOS_ROLE"

// role is a server that runs as a process of its own, or clients.
type role struct {
	// Calling is for clients, Attacking for those of S20, Loris for those of S4; nil for a
	// server, which all else is for.
	Calling   *callingRole
	Attacking *attackRole
	Loris     *lorisRole
	// Journal is the file for the calls that run; empty for none.
	Journal string
	Config  fulmar.ServerConfig
	// Files is how many descriptors it may have open; 0 for as many as usual.
	Files uint64
	// LogFile is where it logs; empty for nowhere.
	LogFile string
	// Revoked is a file with certificates of clients that are not good any more, which
	// one of the authorities has signed; empty for none.
	Revoked string
	// Mishaps: interceptors and an observer go wrong for some callers.
	Mishaps bool
	// Streams: methods that nobody knows are streams of which all is received.
	Streams bool
}

// asRole does what the environment asks for, and reports whether it does.
func asRole() bool {
	text := os.Getenv(roleVariable)
	if text == "" {
		return false
	}
	var r role
	err := json.Unmarshal([]byte(text), &r)
	switch {
	case err != nil:
	case r.Calling != nil:
		err = r.Calling.call()
	case r.Attacking != nil:
		err = r.Attacking.attack()
	case r.Loris != nil:
		err = r.Loris.attack()
	default:
		err = r.serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "role:", err)
		os.Exit(1)
	}
	return true
}

// serve serves until the process is told to stop, or loses who started it.
func (r role) serve() error {
	if r.Files > 0 {
		limit := unix.Rlimit{Cur: r.Files, Max: r.Files}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			return err
		}
	}
	handlers := &handlers{}
	if r.Journal != "" {
		var err error
		if handlers.journal, err = ledger.OpenJournal(r.Journal); err != nil {
			return err
		}
		defer handlers.journal.Close()
	}
	config := r.Config
	config.Logger = slog.New(slog.DiscardHandler)
	if r.LogFile != "" {
		file, err := os.OpenFile(r.LogFile, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		config.Logger = slog.New(slog.NewTextHandler(file, nil))
	}
	if r.Revoked != "" {
		if err := (&revocations{file: r.Revoked, signer: config.TLS.Files.Authorities}).apply(&config); err != nil {
			return err
		}
	}
	if r.Mishaps {
		mishaps(&config)
	}
	if r.Streams {
		config.UnknownStreamHandler = receiveAll
	}
	server, err := fulmar.NewServer(config)
	if err != nil {
		return err
	}
	chaosapi.RegisterChaosServer(server, handlers)
	address, err := server.Listen()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println(address)
	go func() {
		// Standard input ends with the process that started this one.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	return server.Serve(ctx)
}

// receiveAll is a handler of streams.
func receiveAll(_ context.Context, messages *fulmar.ServerMessages) error {
	for {
		var message fulmar.Raw
		if err := messages.Recv(&message); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// handlers serve Chaos.
type handlers struct {
	journal       *ledger.Journal
	running, most atomic.Int64
}

func (h *handlers) Call(ctx context.Context, request *chaosapi.Request) (*chaosapi.Reply, error) {
	running := h.running.Add(1)
	defer h.running.Add(-1)
	for most := h.most.Load(); running > most && !h.most.CompareAndSwap(most, running); most = h.most.Load() {
	}
	if h.journal != nil && request.ID != 0 {
		expired := request.Deadline != 0 && time.Now().UnixNano() > request.Deadline
		if err := h.journal.Enter(uint64(request.ID), expired); err != nil {
			return nil, err
		}
	}
	if request.Burn > 0 {
		burn(time.Duration(request.Burn) * time.Microsecond)
	}
	if request.Nap > 0 {
		select {
		case <-time.After(time.Duration(request.Nap) * time.Microsecond):
		case <-ctx.Done():
		}
	}
	if request.Zeros < 0 || request.Zeros > 32<<20 {
		return nil, fulmar.Errorf(fulmar.InvalidArgument, "%d zeros", request.Zeros)
	}
	reply := &chaosapi.Reply{ID: request.ID, Payload: request.Payload}
	if request.Zeros > 0 {
		reply.Payload = append(make([]byte, request.Zeros), request.Payload...)
	}
	return reply, nil
}

// burn takes a processor for d, which is what the thread has got of it and not how
// late it is.
func burn(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for start := threadTime(); threadTime()-start < d; {
	}
}

// threadTime is how long this thread has had a processor.
func threadTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
	return time.Duration(now.Nano())
}

func (h *handlers) Tell(ctx context.Context, request *chaosapi.Request) error {
	_, err := h.Call(ctx, request)
	return err
}

// Peak returns how many calls ran at most at a time.
func (h *handlers) Peak(context.Context) (int64, error) { return h.most.Load(), nil }

func (h *handlers) Nest(_ context.Context, node *chaosapi.Node) (*chaosapi.Node, error) {
	return node, nil
}

func (h *handlers) Misbehave(_ context.Context, how string) error {
	switch how {
	case "panic":
		panic("a handler that panics")
	case "nil":
		var request *chaosapi.Request
		request.ID++
	case "goexit":
		runtime.Goexit()
	case "error":
		return errors.New("a handler that fails")
	}
	return nil
}
