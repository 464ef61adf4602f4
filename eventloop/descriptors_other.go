//go:build !unix

package eventloop

import "math"

// descriptorLimit returns how many files this process may open. Windows has no
// limit that a server could reach.
func descriptorLimit() uint64 { return math.MaxUint64 }
