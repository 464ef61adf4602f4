// Package governancetest tests contestants of suite governance: that what they measure is
// what the suite says.
package governancetest

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/governance"
)

// BenchmarkCalls makes the calls of the case full-stack, with and without governance, by
// the clock of package testing: -benchmem and -cpuprofile check by other means what the
// suite reports.
func BenchmarkCalls(b *testing.B, c governance.Contestant) {
	network := governance.NewNetwork()
	for name, connect := range map[string]func() (governance.Client, error){
		"plain": func() (governance.Client, error) { return c.Plain(network, governance.Addresses(0, 1)[0]) },
		"full": func() (governance.Client, error) {
			return c.Full(network, governance.Addresses(1, governance.Instances))
		},
	} {
		b.Run(name, func(b *testing.B) {
			client, err := connect()
			if err != nil {
				b.Fatal(err)
			}
			calls := governance.Calls(client.Echo)
			const first = 50 * governance.Instances
			if _, err := calls(first); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			took, err := calls(b.N)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.StopTimer()
			if client.Close != nil {
				if err := client.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
