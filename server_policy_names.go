package fulmar

import (
	"maps"
	"slices"

	"github.com/fulmar-rpc/fulmar/policy"
)

// setPolicy makes a document hold.
func (s *Server) setPolicy(document policy.Document, version uint64, source string) {
	s.governor.set(document.Server, version, source)
	s.admission.configure(document.Server.Queue)
	s.limitConnections()
	s.warnOfNames(document.Server, version, source)
}

// limitConnections has the listener, if there is one, keep open as many connections as the
// policy says that holds.
func (s *Server) limitConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.listener.LimitConnections(s.governor.current.Load().policy.Connections)
	}
}

// policyNamesSaid is how many names a line of the log has: a document can have a thousand.
const policyNamesSaid = 10

// warnOfNames logs which names of a document are neither those of a registered service nor
// of a method of one: their limits hold for nothing, and a slip of the pen should not pass for
// protection. A server that answers unknown calls as well may get any name. It looks at each
// document once, and at none before the server serves, because services are registered until
// then.
func (s *Server) warnOfNames(document policy.Server, version uint64, source string) {
	s.mu.Lock()
	serving := s.serving
	s.mu.Unlock()
	if !serving || len(document.Methods) == 0 || s.config.UnknownHandler != nil || s.config.UnknownStreamHandler != nil || s.namesOf.Swap(version+1) == version+1 {
		return
	}
	known := map[string]bool{}
	for service, methods := range s.methods.services {
		known[service] = true
		for method := range methods {
			known[service+"."+method], known[service+"/"+method] = true, true
		}
	}
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(document.Methods)), func(name string) bool { return known[name] })
	if len(unknown) == 0 {
		return
	}
	s.transport.Log().Warn("policy has limits for names that no registered service or method has; they hold for nothing",
		"names", unknown[:min(len(unknown), policyNamesSaid)], "unknown", len(unknown), "version", version, "source", source)
}
