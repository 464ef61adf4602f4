module github.com/fulmar-rpc/fulmar/examples/quickstart

go 1.26.0

require github.com/fulmar-rpc/fulmar v0.0.0-00010101000000-000000000000

replace github.com/fulmar-rpc/fulmar => ../..
