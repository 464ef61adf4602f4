module github.com/fulmar-rpc/fulmar/test/interop

go 1.26.0

require (
	github.com/fulmar-rpc/fulmar v0.0.0
	google.golang.org/protobuf v1.36.12
)

require (
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/fulmar-rpc/fulmar => ../..
