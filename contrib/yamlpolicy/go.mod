module github.com/fulmar-rpc/fulmar/contrib/yamlpolicy

go 1.26.0

require (
	github.com/fulmar-rpc/fulmar v0.0.0
	go.yaml.in/yaml/v3 v3.0.6
)

require (
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/fulmar-rpc/fulmar => ../..
