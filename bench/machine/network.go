package machine

// Network is where the calls of a benchmark travel.
type Network struct {
	// Isolated tells whether it is a network namespace of the benchmark's own:
	// nobody else's packets, no firewall, and settings that are the same for all
	// contestants.
	Isolated bool `json:"isolated"`
	// CongestionControl of TCP, for every socket of every contestant.
	CongestionControl string `json:"congestion_control"`
	// Warning says why it is not isolated, or is empty.
	Warning string `json:"warning,omitempty"`
}
