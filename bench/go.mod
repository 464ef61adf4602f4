module github.com/fulmar-rpc/fulmar/bench

go 1.26.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.2.0
	github.com/fulmar-rpc/fulmar v0.0.0-00010101000000-000000000000
	github.com/google/pprof v0.0.0-20240727154555-813a5fbdbec8
	golang.org/x/sys v0.49.0
	google.golang.org/protobuf v1.36.12
)

require (
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/net v0.62.0 // indirect
)

replace github.com/fulmar-rpc/fulmar => ..
