module github.com/fulmar-rpc/fulmar/test/grpc

go 1.26.0

replace github.com/fulmar-rpc/fulmar => ../..

require (
	github.com/fulmar-rpc/fulmar v0.0.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	cloud.google.com/go/compute/metadata v0.9.0 // indirect
	github.com/cncf/xds/go v0.0.0-20260202195803-dba9d589def2 // indirect
	github.com/envoyproxy/protoc-gen-validate v1.3.3 // indirect
	github.com/fulmar-rpc/fulmar/contrib/grpccompat v0.0.0
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/fulmar-rpc/fulmar/contrib/grpccompat => ../../contrib/grpccompat
