//go:build !linux

package machine

import (
	"context"
	"os"
	"time"
)

func (f *Facts) ask() {}

// Load is not known here.
func Load() (float64, error) { return 0, ErrUnsupported }

// Busy is not known here.
func Busy() (time.Duration, error) { return 0, ErrUnsupported }

// ProcessTime is not known here.
func ProcessTime(int) (time.Duration, error) { return 0, ErrUnsupported }

// PeakMemory is not known here.
func PeakMemory(int) (int64, error) { return 0, ErrUnsupported }

// Sockets does not work here.
func Sockets() (a, b *os.File, err error) { return nil, nil, ErrUnsupported }

// Pair does not work here.
func Pair() (server, client int, err error) { return 0, 0, ErrUnsupported }

// On does not work here.
func On(int, func() error) error { return ErrUnsupported }

// Distance is not known here.
func Distance(int, int) (time.Duration, error) { return 0, ErrUnsupported }

// KeepAwake does not work here.
func KeepAwake(time.Time, time.Duration) (stop func(), err error) { return nil, ErrUnsupported }

// Isolate does not work here.
func Isolate(context.Context, string) (Network, bool, error) { return Network{}, false, ErrUnsupported }

// Inside is false here.
func Inside() bool { return false }

// Plain describes the network of the machine itself.
func Plain(why string) Network {
	return Network{Warning: "no network namespace of the benchmark's own: " + why}
}
