package testservers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrAbsent says that a program is neither on the PATH nor in the .cache folder of the
// repository, where `make registries` puts it. Tests that need it are skipped with that.
var ErrAbsent = errors.New("not found: run `make registries`")

// startPatience bounds how long a server may take until it answers, on a machine that
// others use too.
const startPatience = time.Minute

// Server is one server, which may be killed and started again at the same address. One
// goroutine may use it at a time.
type Server struct {
	// Address is where clients connect to: host:port.
	Address string

	name    string
	data    string // what it has stored
	log     string
	words   []string
	answers func(ctx context.Context, address string) error

	command *exec.Cmd
	ended   chan struct{}
}

// Start starts it and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	if s.command != nil {
		return fmt.Errorf("%s: it runs", s.name)
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(s.words[0], s.words[1:]...)
	command.Dir, command.Stdout, command.Stderr = filepath.Dir(s.log), log, log
	if err := command.Start(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.command, s.ended = command, make(chan struct{})
	ended := s.ended
	go func() {
		defer close(ended)
		_ = command.Wait()
	}()
	if err := s.waitUntilItAnswers(ctx); err != nil {
		s.Kill()
		said, _ := os.ReadFile(s.log)
		return fmt.Errorf("%s: %w\n%s", s.name, err, said[max(0, len(said)-2000):])
	}
	return nil
}

func (s *Server) waitUntilItAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := s.answers(ctx, s.Address)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-s.ended:
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("no answer within %v: %w", startPatience, err)
		}
	}
}

// Kill ends it at once, and waits. Without effect on one that does not run.
func (s *Server) Kill() {
	if s.command == nil {
		return
	}
	_ = s.command.Process.Kill()
	<-s.ended
	s.command = nil
}

// Pause stops it as it is.
func (s *Server) Pause() error { return s.with(Pause) }

// Resume lets a server go on that was paused.
func (s *Server) Resume() error { return s.with(Resume) }

func (s *Server) with(do func(*os.Process) error) error {
	if s.command == nil {
		return fmt.Errorf("%s: it does not run", s.name)
	}
	return do(s.command.Process)
}

// Pause stops a process as it is.
func Pause(process *os.Process) error { return process.Signal(stopSignal) }

// Resume lets a process go on that was paused.
func Resume(process *os.Process) error { return process.Signal(continueSignal) }

// Wipe removes all that it has stored. It must not run.
func (s *Server) Wipe() error {
	if s.command != nil {
		return fmt.Errorf("%s: it runs", s.name)
	}
	return os.RemoveAll(s.data)
}

// freePort returns a port of the loopback interface that nobody uses now. It is below those
// that systems give to connections and to listeners that ask for any (32768 and up on
// Linux, 49152 elsewhere): one of these can be taken before the server has it, or while the
// server is killed, and one run of the tests failed for that.
func freePort() (string, error) {
	const lowest, above, tries = 10_000, 32_768, 100
	var last error
	for range tries {
		port := strconv.Itoa(lowest + rand.IntN(above-lowest))
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return "", fmt.Errorf("no free port from %d to %d in %d tries: %w", lowest, above-1, tries, last)
}

// cacheFolder returns the .cache folder of the repository that the working folder is in.
func cacheFolder() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		module, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil && strings.HasPrefix(string(module), "module github.com/fulmar-rpc/fulmar\n") {
			return filepath.Join(folder, ".cache"), nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("the working folder is not in the repository")
		}
		folder = parent
	}
}

// find returns the first of some files that exists.
func find(what string, candidates ...string) (string, error) {
	for _, candidate := range candidates {
		if _, err := os.Stat(candidate); err == nil {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%s %w", what, ErrAbsent)
}
