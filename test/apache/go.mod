module github.com/fulmar-rpc/fulmar/test/apache

go 1.26.0

require (
	github.com/apache/thrift v0.25.0
	github.com/fulmar-rpc/fulmar v0.0.0
	github.com/fulmar-rpc/fulmar/test/interop v0.0.0
)

require (
	github.com/bytedance/gopkg v0.1.4 // indirect
	github.com/cloudwego/gopkg v0.2.0 // indirect
	github.com/cloudwego/thriftgo v0.4.5 // indirect
	github.com/dlclark/regexp2 v1.11.0 // indirect
	github.com/kr/text v0.2.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace (
	github.com/fulmar-rpc/fulmar => ../..
	github.com/fulmar-rpc/fulmar/test/interop => ../interop
)

tool github.com/cloudwego/thriftgo
