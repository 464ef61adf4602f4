module github.com/fulmar-rpc/fulmar/test/policy

go 1.26.0

require (
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/fulmar-rpc/fulmar v0.0.0
	github.com/sony/gobreaker/v2 v2.4.0
	golang.org/x/time v0.16.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/net v0.62.0 // indirect
)

replace github.com/fulmar-rpc/fulmar => ../..
