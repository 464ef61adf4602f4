module github.com/fulmar-rpc/fulmar/test/codec

go 1.26.0

require (
	github.com/apache/thrift v0.25.0
	github.com/cloudwego/gopkg v0.2.0
	github.com/fulmar-rpc/fulmar v0.0.0
	github.com/fulmar-rpc/fulmar/test/apache v0.0.0
	github.com/fulmar-rpc/fulmar/test/interop v0.0.0
	github.com/fulmar-rpc/fulmar/test/kitex v0.0.0
)

require (
	github.com/bytedance/gopkg v0.1.4 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	github.com/fulmar-rpc/fulmar => ../..
	github.com/fulmar-rpc/fulmar/test/apache => ../apache
	github.com/fulmar-rpc/fulmar/test/interop => ../interop
	github.com/fulmar-rpc/fulmar/test/kitex => ../kitex
)
