module example.com/shop

go 1.26.0

require (
	github.com/fulmar-rpc/fulmar v0.0.0-00010101000000-000000000000
	go.uber.org/goleak v1.3.0
)

require (
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/fulmar-rpc/fulmar => ../..
