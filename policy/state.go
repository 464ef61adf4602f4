package policy

// ServerState is what the limits of a server do, for people and metrics.
type ServerState struct {
	// Refused is how many calls they have refused since the server was made, all together.
	// What a server refuses for other reasons is not among them.
	Refused uint64
	// Limit is that for all calls together.
	Limit LimiterState
	// Methods are the limits of services and methods, by their names in the document. Of
	// one that reads as a service and as a method both count.
	Methods map[string]LimiterState
	// Callers are the ten (CallersShown) of which most calls were refused.
	Callers CallersState
	// Adaptive is what the adaptive limit has found out.
	Adaptive AdaptiveState
}

// ClientState is what the policies of a client do, for people and metrics.
type ClientState struct {
	// Refused is how many calls breakers have refused since the client was made, all
	// together.
	Refused uint64
	// TargetBreaker is that of the target.
	TargetBreaker CircuitState
	// Methods are the breakers of methods that were called and have one. Of methods that no
	// definition describes, those beyond 1,000 (PolicyMethods) that the document does not
	// name share one, with the name "" or that of a service that it names.
	Methods map[string]CircuitState
	// RetriesLeft is how many further attempts there may be at once, and RetriesSaved what
	// that may grow to; see RetryBudget.
	RetriesLeft, RetriesSaved int
}

// With returns the state of two limits of one name.
func (s LimiterState) With(other LimiterState) LimiterState {
	s.Running += other.Running
	s.Refused += other.Refused
	if s.Left < 0 || other.Left >= 0 && other.Left < s.Left {
		s.Left = other.Left
	}
	return s
}
