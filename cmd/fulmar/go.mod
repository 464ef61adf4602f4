module github.com/fulmar-rpc/fulmar/cmd/fulmar

go 1.26.0

require (
	github.com/fulmar-rpc/fulmar v0.0.0
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
)

replace github.com/fulmar-rpc/fulmar => ../..
