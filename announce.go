package fulmar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// announcing keeps a server in its registry while it serves.
type announcing struct {
	cancel context.CancelFunc
	// done is closed when nothing is announced any more.
	done chan struct{}
	// registration is there behind done, nil if it has never been possible.
	registration cluster.Registration
}

// announce begins to register the server, in the background: a registry that is away must
// not keep servers from serving, those least that restart because of it. It returns nil
// without a registry.
func (s *Server) announce() *announcing {
	if s.config.Registry == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &announcing{cancel: cancel, done: make(chan struct{})}
	ctx = cluster.WithReport(ctx, func(err error) {
		s.transport.Log().Warn("the registration of the server fails", "service", s.config.Service, "error", err.Error())
	})
	go s.register(ctx, a)
	return a
}

// register announces the server, again and again until that has succeeded or ctx ends.
func (s *Server) register(ctx context.Context, a *announcing) {
	defer close(a.done)
	instance := s.advertised()
	pauses := registries.Pauses{Min: limits.RegisterPauseMin, Max: limits.RegisterPauseMax}
	for {
		registration, err := s.registerOnce(ctx, instance)
		if err == nil {
			a.registration = registration
			s.logger.Info("the server is registered", "service", s.config.Service, "address", instance.Address)
			return
		}
		if ctx.Err() != nil {
			return
		}
		pause := pauses.Next()
		s.logger.Warn("the server could not be registered, and will be", "service", s.config.Service, "address", instance.Address,
			"error", err.Error(), "again in", pause)
		if registries.Wait(ctx, pause) != nil {
			return
		}
	}
}

// registerOnce runs code of the user: a panic there is an error.
func (s *Server) registerOnce(ctx context.Context, instance cluster.Instance) (registration cluster.Registration, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the registry panicked: %v", value)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, limits.RegisterTimeout)
	defer cancel()
	registration, err = s.config.Registry.Register(ctx, s.config.Service, instance)
	if err == nil && registration == nil {
		err = errors.New("the registry returned neither a registration nor an error")
	}
	return registration, err
}

// withdraw takes the server out of its registry, and returns when clients should know by
// themselves. a may be nil.
func (a *announcing) withdraw() (known time.Time, err error) {
	if a == nil {
		return time.Time{}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limits.WithdrawTimeout)
	defer cancel()
	a.cancel()
	returned := make(chan error, 1)
	// Code of the user, which must not hold up the stop.
	go func() {
		err := errors.New("it ended its goroutine")
		defer func() {
			if value := recover(); value != nil {
				err = fmt.Errorf("it panicked: %v", value)
			}
			returned <- err
		}()
		<-a.done
		if err = nil; a.registration != nil {
			err = a.registration.Withdraw(ctx)
		}
	}()
	select {
	case err = <-returned:
	case <-ctx.Done():
		err = fmt.Errorf("it did not return within %v", limits.WithdrawTimeout)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("server stop: Registry: %w", err)
	}
	if a.registration == nil {
		return time.Time{}, nil
	}
	return time.Now().Add(limits.WithdrawPause), nil
}

// advertised returns what is announced of the server, which listens.
func (s *Server) advertised() cluster.Instance {
	instance := s.config.Advertise
	if instance.Address == "" {
		_, local := s.config.Registry.(cluster.Directory)
		s.mu.Lock()
		instance.Address = advertisedAddress(s.listener.Addr(), local)
		s.mu.Unlock()
	}
	return instance
}

// advertisedAddress returns the address at which a listener can be reached. One that
// listens at all addresses of its machine is reached at the first that others can use, or
// on this machine only at the one that is always there.
func advertisedAddress(listener net.Addr, local bool) string {
	if listener.Network() == "unix" {
		if path := listener.String(); path != "" && path[0] == '@' {
			return "unix:" + path
		}
		return "unix://" + listener.String()
	}
	host, port, err := net.SplitHostPort(listener.String())
	if err != nil {
		return listener.String()
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsUnspecified() {
		return listener.String()
	}
	host = "127.0.0.1"
	if !local {
		addresses, _ := net.InterfaceAddrs()
		host = cmp.Or(reachable(addresses), host)
	}
	return net.JoinHostPort(host, port)
}

// reachable returns the first address of a machine that others can use, of IPv4 if there
// is one; "" if there is none.
func reachable(addresses []net.Addr) (host string) {
	for _, address := range addresses {
		prefix, err := netip.ParsePrefix(address.String())
		ip := prefix.Addr().Unmap()
		if err != nil || !ip.IsGlobalUnicast() {
			continue
		}
		if ip.Is4() {
			return ip.String()
		}
		if host == "" {
			host = ip.String()
		}
	}
	return host
}

// checkAnnouncement returns what is wrong with the fields about a registry.
func (c ServerConfig) checkAnnouncement() (problems []error) {
	if c.Registry == nil {
		if c.Service != "" {
			problems = append(problems, errors.New("server config: Service is set, but Registry is not"))
		}
		if a := c.Advertise; a.Address != "" || a.Weight != 0 || a.Zone != "" || len(a.Tags) > 0 {
			problems = append(problems, errors.New("server config: Advertise is set, but Registry is not"))
		}
		return problems
	}
	if c.Service == "" {
		problems = append(problems, errors.New("server config: Registry is set, but Service is empty"))
	}
	if c.LocalOnly {
		problems = append(problems, errors.New("server config: Registry and LocalOnly are both set, and nobody can call a server that does not listen"))
	}
	if c.Advertise.Address != "" {
		if err := checkPeerAddress(c.Advertise.Address); err != nil {
			problems = append(problems, fmt.Errorf("server config: Advertise: %w", err))
		}
	}
	return problems
}
