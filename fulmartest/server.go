package fulmartest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar"
)

// Server is a server on a Network. It can stop and start again, at the same address, as
// often as the test likes. Safe for concurrent use.
type Server struct {
	network  *Network
	address  string
	config   fulmar.ServerConfig
	register func(*fulmar.Server)
	t        testing.TB
	faults   faults
	rules    rules

	// mu guards what follows; it is held while the server stops or starts.
	mu      sync.Mutex
	running *fulmar.Server
	// served receives what Serve of the running server returns.
	served chan error
}

// Server starts a server with the configuration of the network, for the services that
// register adds. register is called again for each Start. The server ends with t, which
// fails if a handler does not.
func (n *Network) Server(t testing.TB, register func(*fulmar.Server)) *Server {
	t.Helper()
	return n.ServerWith(t, n.config.Server, register)
}

// ServerWith is Server with a configuration of its own.
func (n *Network) ServerWith(t testing.TB, config fulmar.ServerConfig, register func(*fulmar.Server)) *Server {
	t.Helper()
	if config.Listener != nil || config.Address != "" || config.LocalOnly {
		t.Fatalf("fulmartest: Listener, Address and LocalOnly of a server are the network's")
	}
	if config.Logger == nil {
		log := &testLog{t: t}
		t.Cleanup(log.end)
		config.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	s := &Server{network: n, address: n.nextAddress(), register: register, t: t}
	// Innermost, so that the user's interceptors see what a rule does as a handler's doing.
	config.Interceptors = append(slices.Clone(config.Interceptors), s.rules.intercept)
	config.StreamInterceptors = append(slices.Clone(config.StreamInterceptors), s.rules.interceptStream)
	s.config = config
	s.Start()
	t.Cleanup(s.Kill)
	t.Cleanup(s.faults.end)
	return s
}

// Address returns where clients of the network find the server: for logs, and for errors,
// which name it.
func (s *Server) Address() string { return s.address }

// Start starts the server again after Stop or Kill. It does nothing if the server runs.
func (s *Server) Start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return
	}
	listener, err := s.network.sim.Listen(s.address)
	if err != nil {
		s.t.Fatalf("fulmartest: %v", err)
	}
	config := s.config
	config.Listener = listener
	server, err := fulmar.NewServer(config)
	if err != nil {
		_ = listener.Close()
		s.t.Fatalf("fulmartest: %v", err)
	}
	s.register(server)
	if _, err := server.Listen(); err != nil {
		s.t.Fatalf("fulmartest: %v", err)
	}
	served := make(chan error, 1)
	s.running, s.served = server, served
	go func() { served <- server.Serve(context.Background()) }()
}

// Stop stops the server gracefully: calls that run may end, within DrainTimeout, and new
// connections are refused. It returns when that is done. It does nothing if the server
// does not run.
func (s *Server) Stop() {
	s.t.Helper()
	s.end(func(server *fulmar.Server) error { return server.Shutdown(context.Background()) })
}

// Kill stops the server at once, as if its process had died: connections are reset, and
// the contexts of calls that run end. It returns when these have returned. It does nothing
// if the server does not run.
func (s *Server) Kill() {
	s.t.Helper()
	s.end(func(server *fulmar.Server) error {
		s.network.sim.Cut(s.address)
		return server.Close()
	})
}

func (s *Server) end(stop func(*fulmar.Server) error) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return
	}
	if err := stop(s.running); err != nil {
		s.t.Errorf("fulmartest: stopping %s: %v", s.address, err)
	}
	// A server that ends before its goroutine got to Serve has served nobody.
	if err := <-s.served; err != nil && !errors.Is(err, fulmar.ErrServerClosed) {
		s.t.Errorf("fulmartest: %s: %v", s.address, err)
	}
	s.running = nil
}

// Stats returns the counts of the server that runs; zero if none does.
func (s *Server) Stats() fulmar.ServerStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return fulmar.ServerStats{}
	}
	return s.running.Stats()
}
