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

	"github.com/fulmar-rpc/fulmar/policy"

	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// Source is where a policy document is kept in etcd. Several goroutines may watch it,
// each for itself.
type Source struct {
	registry *Registry
	watch    func(ctx context.Context, deliver func(document []byte, version string)) error

	mu       sync.Mutex
	problems []Problem
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
// exist, or is removed, nothing is delivered, and the log says so: the last document
// stays in force.
func (r *Registry) Document(key string) (*Source, error) {
	if err := registries.CheckKey(key, keyBytesMax); err != nil {
		return nil, fmt.Errorf("etcd registry: key of a policy document: %w", err)
	}
	s := &Source{registry: r}
	s.watch = func(ctx context.Context, deliver func([]byte, string)) error {
		var last []byte
		f := &follower[[]byte]{
			registry: r, subject: key, prefix: key, single: true, keysMax: 1, valueBytesMax: r.config.MaxPolicyBytes,
			parse: func(_ string, value []byte) ([]byte, error) { return bytes.Clone(value), nil },
			changed: func(f *follower[[]byte], now time.Time) time.Duration {
				value := f.values[""]
				if value == nil {
					r.notices.Warn(now, "etcd: there is no policy document", key)
					return 0
				}
				if last == nil || !bytes.Equal(last, *value) {
					last = append([]byte{}, *value...)
					r.stats.delivered.Add(1)
					deliver(*value, version(f.revision))
				}
				return 0
			},
		}
		return f.run(ctx)
	}
	return s, nil
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
		settings := kitexSettings{services: services}
		f := &follower[kitexValue]{
			registry: r, subject: prefix, prefix: prefix, single: single, keysMax: kitexKeysMax, valueBytesMax: r.config.MaxPolicyBytes,
			parse: func(name string, value []byte) (kitexValue, error) {
				return parseKitex(or(name, kitexLimit), value)
			},
			changed: func(f *follower[kitexValue], now time.Time) time.Duration {
				document, problems := settings.update(prefix, f.values)
				s.report(now, prefix, problems)
				text, err := json.Marshal(document)
				if err != nil {
					r.notices.Warn(now, "etcd: a policy cannot be written", prefix, "error", err)
					return 0
				}
				if last == nil || !bytes.Equal(last, text) {
					last = append([]byte{}, text...)
					r.stats.delivered.Add(1)
					deliver(text, version(f.revision))
				}
				return 0
			},
		}
		return f.run(ctx)
	}
	return s
}

// report keeps problems, and logs each when it is new.
func (s *Source) report(now time.Time, prefix string, problems []Problem) {
	s.mu.Lock()
	before := make(map[Problem]bool, len(s.problems)) // there can be one for each of ten thousand methods
	for _, problem := range s.problems {
		before[problem] = true
	}
	s.problems = problems
	s.mu.Unlock()
	for _, problem := range problems {
		if !before[problem] {
			s.registry.notices.Warn(now, "etcd: a setting of Kitex is not in force", problem.Key+" "+problem.Field, "reason", problem.Reason)
		}
	}
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
}

func (s *kitexSettings) update(prefix string, values map[string]*kitexValue) (policy.Document, []Problem) {
	var problems []Problem
	next := map[string]kitexValue{}
	for name, value := range values {
		category := or(name, kitexLimit)
		switch before, known := s.last[category]; {
		case value != nil:
			next[category] = *value
		case known:
			next[category] = before
			problems = append(problems, Problem{prefix + name, "(all)", "it is broken; what it was before stays in force"})
		default:
			problems = append(problems, Problem{prefix + name, "(all)", "it is broken"})
		}
	}
	s.last = next
	t := translation{prefix: strings.TrimSuffix(prefix, kitexLimit), services: s.services}
	t.all(next)
	problems = append(problems, t.problems...)
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Error(), b.Error()) })
	return t.document, problems
}
