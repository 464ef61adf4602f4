module github.com/fulmar-rpc/fulmar/contrib/zookeeper

go 1.26.0

require (
	github.com/fulmar-rpc/fulmar v0.0.0
	github.com/go-zookeeper/zk v1.0.4
)

require (
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/fulmar-rpc/fulmar => ../..
