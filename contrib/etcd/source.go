package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/policy"
)

// Source is where a policy document is kept in etcd. Several goroutines may watch it,
// each for itself.
type Source struct {
	registry *Registry
	watch    func(ctx context.Context, deliver func(document []byte, version string)) error

	mu       sync.Mutex
	problems []Problem
	// unsaid are those that the log does not have yet, which had a line of them at saidAt.
	unsaid map[Problem]bool
	saidAt time.Time
}

// Watch calls deliver, one call at a time, with the document and the revision of etcd at
// which it was seen, as soon as it knows it and whenever it changes. The bytes belong to
// whom they are delivered to. While etcd fails it delivers nothing and tries again. It
// returns an error when ctx ends or the Registry is closed.
func (s *Source) Watch(ctx context.Context, deliver func(document []byte, version string)) error {
	return s.watch(ctx, deliver)
}

// Problems returns what of Kitex's settings is not part of the document that was
// delivered last, because it is broken or has no equivalent.
func (s *Source) Problems() []Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// version says where a document comes from.
func version(revision int64) string { return fmt.Sprintf("etcd revision %d", revision) }

// Document is the policy document that is the value of one key. If the key does not
// exist, is removed, or has a value that is longer than MaxPolicyBytes, nothing is delivered:
// the last document stays in force. The log says which, and so is told to cluster.Report.
func (r *Registry) Document(key string) (*Source, error) {
	if err := registries.CheckKey(key, keyBytesMax); err != nil {
		return nil, fmt.Errorf("etcd registry: key of a policy document: %w", err)
	}
	s := &Source{registry: r}
	s.watch = func(ctx context.Context, deliver func([]byte, string)) error {
		return r.document(ctx, key, deliver).run(ctx)
	}
	return s, nil
}

// document follows the policy document at a key.
func (r *Registry) document(ctx context.Context, key string, deliver func([]byte, string)) *follower[[]byte] {
	var last []byte
	return &follower[[]byte]{
		registry: r, subject: key, prefix: key, single: true, keysMax: 1, valueBytesMax: r.config.MaxPolicyBytes,
		parse: func(_ string, value []byte) ([]byte, error) { return bytes.Clone(value), nil },
		changed: func(f *follower[[]byte], now time.Time) time.Duration {
			value, there := f.values[""]
			switch {
			case !there:
				cluster.Report(ctx, fmt.Errorf("etcd: there is no policy document at %q", key))
				r.notices.Warn(now, "etcd: there is no policy document", key)
			case value == nil: // the log has it from who looked at it
				cluster.Report(ctx, fmt.Errorf("etcd: the policy document at %q is too long (limit %d bytes, MaxPolicyBytes)", key, r.config.MaxPolicyBytes))
			}
			switch {
			case value == nil:
				last = nil // whoever was told wants to hear that it is there again
			case last == nil || !bytes.Equal(last, *value):
				last = append([]byte{}, *value...)
				r.stats.delivered.Add(1)
				deliver(*value, version(f.revision))
			}
			return 0
		},
	}
}

// keyBytesMax bounds the key of a policy document.
const keyBytesMax = 1 << 10

// kitexRoot is where Kitex's extension for etcd keeps settings.
const kitexRoot = "/KitexConfig/"

// KitexClientPolicy is the policy for the calls of a client to a server, both by the
// names that they have in Kitex, translated from what Kitex's extension for etcd keeps:
// retry, rpc_timeout and circuit_break. Kitex names methods without their service, so
// services are those of the server: each setting of a method holds for the method of
// that name of each. "Orders" is a service in Thrift, "shop.v1.Orders" or "Orders/" one
// in Protobuf. Without services only what holds for all methods is translated.
func (r *Registry) KitexClientPolicy(client, server string, services ...string) (*Source, error) {
	failures := []error{registries.CheckService(client), registries.CheckService(server)}
	for _, service := range services {
		failures = append(failures, registries.CheckService(strings.TrimSuffix(service, "/")))
	}
	if err := errors.Join(failures...); err != nil {
		return nil, fmt.Errorf("etcd registry: %w", err)
	}
	return r.kitexSource(kitexRoot+client+"/"+server+"/", false, services), nil
}

// KitexServerPolicy is the policy for the calls that a server gets, by the name that it
// has in Kitex, translated from the limits that Kitex's extension for etcd keeps.
func (r *Registry) KitexServerPolicy(server string) (*Source, error) {
	if err := registries.CheckService(server); err != nil {
		return nil, fmt.Errorf("etcd registry: %w", err)
	}
	return r.kitexSource(kitexRoot+server+"/"+kitexLimit, true, nil), nil
}

// kitexKeysMax is how many keys may be where Kitex has five at most.
const kitexKeysMax = 100

func (r *Registry) kitexSource(prefix string, single bool, services []string) *Source {
	s := &Source{registry: r}
	services = slices.Clone(services)
	s.watch = func(ctx context.Context, deliver func([]byte, string)) error {
		var last []byte
		settings := kitexSettings{services: services, valueBytesMax: r.config.MaxPolicyBytes}
		f := &follower[kitexValue]{
			registry: r, subject: prefix, prefix: prefix, single: single, keysMax: kitexKeysMax, valueBytesMax: r.config.MaxPolicyBytes,
			parse: func(name string, value []byte) (kitexValue, error) {
				parsed, err := parseKitex(or(name, kitexLimit), value)
				if err != nil {
					r.stats.brokenValues.Add(1)
					parsed.broken = err // to be said with its key, beside other problems
				}
				return parsed, nil
			},
			changed: func(f *follower[kitexValue], now time.Time) time.Duration {
				document, problems := settings.update(prefix, f.values)
				again := s.report(now, prefix, problems)
				text, err := json.Marshal(document)
				if err != nil {
					r.notices.Warn(now, "etcd: a policy cannot be written", prefix, "error", err)
					return again
				}
				if last == nil || !bytes.Equal(last, text) {
					last = append([]byte{}, text...)
					r.stats.delivered.Add(1)
					deliver(text, version(f.revision))
				}
				return again
			},
		}
		return f.run(ctx)
	}
	return s
}

// problemsSaid is how many problems a line of the log has.
const problemsSaid = 3

// report keeps problems, and counts those that are new. The log has one line of them, however
// many there are: each method may have one. It has no more than that in 10 s
// (RegistryLogPause), also where they come and go; report returns after which time the next
// line is due.
func (s *Source) report(now time.Time, prefix string, problems []Problem) (again time.Duration) {
	texts, again := s.keep(now, problems)
	if texts != nil {
		s.registry.config.Logger.Warn("etcd: settings of Kitex are not in force", "of", prefix, "settings", strings.Join(texts, "; "))
	}
	return again
}

// keep is report without the log. It returns what the log is to have.
func (s *Source) keep(now time.Time, problems []Problem) (texts []string, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := make(map[Problem]bool, len(s.problems)) // there can be one for each of ten thousand methods
	for _, problem := range s.problems {
		said[problem] = !s.unsaid[problem]
	}
	unsaid := map[Problem]bool{}
	for _, problem := range problems {
		done, known := said[problem]
		if !known {
			s.registry.stats.problems.Add(1)
		}
		if done {
			continue
		}
		unsaid[problem] = true
		if len(texts) < problemsSaid {
			texts = append(texts, fmt.Sprintf("%.300s", problem.Key+" "+problem.Field+": "+problem.Reason))
		}
	}
	s.problems, s.unsaid = problems, unsaid
	if len(unsaid) == 0 {
		return nil, 0
	}
	if wait := limits.RegistryLogPause - now.Sub(s.saidAt); wait > 0 {
		return nil, wait
	}
	if more := len(unsaid) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d others", more))
	}
	s.unsaid, s.saidAt = nil, now
	return texts, 0
}

// Problem is a setting of Kitex that is not in force.
type Problem struct {
	// Key is that of etcd, Field the path of what is meant in its value: the name of a
	// method and those of fields.
	Key, Field string
	// Reason says why.
	Reason string
}

// Error makes a Problem an error.
func (p Problem) Error() string {
	return fmt.Sprintf("kitex config: %s: %s: %s", p.Key, p.Field, p.Reason)
}

var _ error = Problem{}

// kitexSettings are what was read last of each category. What is broken now does not
// count: what it was before does.
type kitexSettings struct {
	services []string
	last     map[string]kitexValue
	// valueBytesMax is how long a value may be.
	valueBytesMax int
}

func (s *kitexSettings) update(prefix string, values map[string]*kitexValue) (policy.Document, []Problem) {
	var problems []Problem
	next := map[string]kitexValue{}
	for name, value := range values {
		category := or(name, kitexLimit)
		if value != nil && value.broken == nil {
			next[category] = *value
			continue
		}
		reason := fmt.Sprintf("it is longer than %d bytes (MaxPolicyBytes)", s.valueBytesMax)
		if value != nil {
			reason = fmt.Sprintf("it is broken: %.200s", value.broken.Error())
		}
		if before, known := s.last[category]; known {
			next[category] = before
			reason += "; what it was before stays in force"
		}
		problems = append(problems, Problem{prefix + name, "(all)", reason})
	}
	s.last = next
	t := translation{prefix: strings.TrimSuffix(prefix, kitexLimit), services: s.services}
	t.all(next)
	problems = append(problems, t.problems...)
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Error(), b.Error()) })
	return t.document, problems
}
