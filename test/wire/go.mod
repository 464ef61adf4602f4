module github.com/fulmar-rpc/fulmar/test/wire

go 1.26.0

require (
	github.com/apache/thrift v0.25.0
	github.com/cloudwego/gopkg v0.2.0
	github.com/fulmar-rpc/fulmar v0.0.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/bytedance/gopkg v0.1.4 // indirect
	go.uber.org/goleak v1.3.0 // indirect
)

replace github.com/fulmar-rpc/fulmar => ../..
