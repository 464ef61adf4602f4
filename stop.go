package fulmar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// beforeStop takes the server out of its registry, calls ServerConfig.BeforeStop, and
// waits until clients know, or until the server has ended without waiting.
func (s *Server) beforeStop(announced *announcing, ended <-chan struct{}) error {
	known, err := announced.withdraw()
	err = errors.Join(err, s.callBeforeStop())
	if pause := time.Until(known); pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ended:
		}
	}
	return err
}

// callBeforeStop calls ServerConfig.BeforeStop, if there is one, and waits for it, but not
// for ever.
func (s *Server) callBeforeStop() error {
	hook := s.config.BeforeStop
	if hook == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limits.BeforeStopTimeout)
	defer cancel()
	returned := make(chan error, 1)
	go func() {
		err := errors.New("it ended its goroutine")
		defer func() {
			if value := recover(); value != nil {
				err = fmt.Errorf("it panicked: %v", value)
			}
			returned <- err
		}()
		err = hook(ctx)
	}()
	select {
	case err := <-returned:
		if err != nil {
			return fmt.Errorf("server stop: BeforeStop: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("server stop: BeforeStop did not return within %v; the stop went on without it", limits.BeforeStopTimeout)
	}
}

// Shutdown stops gracefully, as ending the context of Serve does, and waits
// until Serve returns. If ctx ends first it closes everything that is left, as
// Close does, and returns the error of ctx. A server that was not serving is
// closed.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	stop, served := s.stop, s.served
	s.mu.Unlock()
	if stop == nil {
		return s.Close()
	}
	stop()
	select {
	case <-served:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), s.Close())
	}
}
