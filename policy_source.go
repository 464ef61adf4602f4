package fulmar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
	"github.com/fulmar-rpc/fulmar/policy"
)

// policySource is where documents come from while a program runs: a file, a function of
// the user, or calls of SetPolicy. A document that is wrong changes nothing: the last good
// one stays, and the log has all that is wrong with the other. What stays wrong is one line
// there and counts once, however often it is looked at.
type policySource struct {
	file    string
	content []byte
	watch   policyWatch
	log     *peerlog.Log
	apply   func(document policy.Document, version uint64, source string)

	// applied and refused count documents; what cannot be read counts as refused.
	applied, refused atomic.Uint64

	// mu makes documents take effect one after the other.
	mu     sync.Mutex
	cancel context.CancelFunc
	wait   sync.WaitGroup

	trouble trouble
}

// policyWatch is a source of policies: deliver is called, one call at a time, with a
// document in JSON as soon as there is one, and whenever it changes; version is what the
// source calls it, for the log. What goes wrong it tells cluster.Report. It returns when ctx
// ends, or when it cannot go on, and is then called again after a pause.
type policyWatch = func(ctx context.Context, deliver func(document []byte, version string)) error

// checkPolicy returns what is wrong with the policies of a configuration.
func checkPolicy(config string, document policy.Document, file string, watch policyWatch) (problems []error) {
	if err := document.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("%s: Policy: %w", config, err))
	}
	if file != "" && watch != nil {
		problems = append(problems, fmt.Errorf("%s: PolicyFile and PolicySource are both set", config))
	}
	return problems
}

// newPolicySource reads the file. One that cannot be used is an error: nobody should run
// without the policy that he asked for.
func newPolicySource(file string, watch policyWatch, log *peerlog.Log, apply func(policy.Document, uint64, string)) (*policySource, error) {
	s := &policySource{file: file, watch: watch, log: log, apply: apply}
	if file == "" {
		return s, nil
	}
	err := error(nil)
	if s.content, err = readPolicy(file); err == nil {
		err = s.take(s.content, "file "+file)
	}
	if err != nil {
		return nil, fmt.Errorf("PolicyFile: %s: %w", file, err)
	}
	return s, nil
}

// start begins to watch the file and the function. close must be called in the end.
func (s *policySource) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	if s.file != "" {
		s.wait.Go(func() { s.watchFile(ctx, s.file, s.content) })
	}
	if s.watch != nil {
		s.wait.Go(func() { s.watchFunction(ctx, s.watch) })
	}
}

// close ends what watches, and waits for it.
func (s *policySource) close() {
	if s.cancel != nil {
		s.cancel()
		s.wait.Wait()
	}
}

// take makes a document hold, or says what is wrong with it.
func (s *policySource) take(content []byte, source string) error {
	document, err := policy.ParseJSON(content)
	if err == nil {
		err = document.Validate()
	}
	if err != nil {
		s.refused.Add(1)
		return err
	}
	s.set(document, source)
	return nil
}

// set makes a valid document hold.
func (s *policySource) set(document policy.Document, source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := s.applied.Add(1)
	s.apply(document, version, source)
	s.log.Info("policy changed", "source", source, "version", version)
}

// failed notes that there is no document to be had, if that is news.
func (s *policySource) failed(message string, err error, attributes ...any) {
	news, say := s.trouble.note(err)
	if news {
		s.refused.Add(1)
	}
	if say {
		s.log.Warn(message, append(attributes, "error", err.Error())...)
	}
}

// watchFile looks at a file again and again. What it looked like last time says whether it
// may have changed, its content whether it has. The first look is not compared: the file
// may have changed since content was read, which for a server is before it serves.
func (s *policySource) watchFile(ctx context.Context, file string, content []byte) {
	var seen os.FileInfo
	ticker := time.NewTicker(limits.PolicyFileInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		info, err := os.Stat(file)
		if err == nil && seen != nil && os.SameFile(info, seen) && info.ModTime().Equal(seen.ModTime()) && info.Size() == seen.Size() {
			continue
		}
		next, err := readPolicy(file)
		if err != nil {
			seen = nil
			s.failed("policy file cannot be read; the last one stays", err, "file", file)
			continue
		}
		seen = info
		if s.trouble.end() {
			s.log.Info("policy file can be read again", "file", file)
		}
		if bytes.Equal(next, content) {
			continue
		}
		content = next
		if err := s.take(content, "file "+file); err != nil {
			s.log.Warn("policy file refused; the last one stays", "file", file, "error", err.Error())
		}
	}
}

// readPolicy reads a file that is not longer than a document may be. Other kinds of files
// are refused before they are opened: a pipe opens when somebody writes to it, and nobody
// shall wait for that. And afterwards, because it may be another one by then.
func readPolicy(name string) ([]byte, error) {
	if err := isRegular(os.Stat(name)); err != nil {
		return nil, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, withoutName(err)
	}
	defer func() { _ = file.Close() }()
	if err := isRegular(file.Stat()); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, limits.PolicyBytes+1))
	if err != nil {
		return nil, withoutName(err)
	}
	return content, nil
}

// isRegular returns what is wrong with a file that should be a regular one.
func isRegular(info os.FileInfo, err error) error {
	switch {
	case err != nil:
		return withoutName(err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is no regular file (mode %v)", info.Mode())
	}
	return nil
}

// withoutName returns an error about a file for those who know which one it is.
func withoutName(err error) error {
	var named *os.PathError
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}

// watchFunction calls a source until ctx ends.
func (s *policySource) watchFunction(ctx context.Context, watch policyWatch) {
	failed := func(err error) { s.failed("policy source failed; the last policy stays", err) }
	ctx = cluster.WithReport(ctx, failed)
	pauses := registries.Pauses{Min: limits.ResolvePauseMin, Max: limits.ResolvePauseMax}
	for {
		before := s.applied.Load()
		err := s.callWatch(ctx, watch)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it returned although nothing was wrong")
		}
		failed(err)
		if s.applied.Load() != before {
			pauses.Reset()
		}
		if registries.Wait(ctx, pauses.Next()) != nil {
			return
		}
	}
}

// callWatch runs code of the user: a panic there is an error.
func (s *policySource) callWatch(ctx context.Context, watch policyWatch) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the source panicked: %v", value)
		}
	}()
	return watch(ctx, func(document []byte, version string) {
		if ctx.Err() != nil {
			return
		}
		s.trouble.end()
		if err := s.take(document, "source, version "+version); err != nil {
			s.log.Warn("policy refused; the last one stays", "version", version, "error", err.Error())
		}
	})
}
