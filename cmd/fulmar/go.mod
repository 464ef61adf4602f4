module github.com/fulmar-rpc/fulmar/cmd/fulmar

go 1.26.0

require (
	github.com/bufbuild/protocompile v0.14.1
	github.com/fulmar-rpc/fulmar v0.0.0
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sync v0.8.0 // indirect
)

replace github.com/fulmar-rpc/fulmar => ../..
