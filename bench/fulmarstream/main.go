// Command fulmarstream is this project's contestant of suite stream, which cannot take part
// yet.
package main

import "github.com/fulmar-rpc/fulmar/bench/rpc"

func main() { rpc.Main(contestants()...) }

// contestants keep the name, so that the suite says why there are no comparisons.
func contestants() []rpc.Contestant {
	return []rpc.Contestant{{Name: "fulmar", Unavailable: "its transport for gRPC has no streams yet: values of the others only, no ratios"}}
}
