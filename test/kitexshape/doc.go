// Package kitexshape compares what fulmar gen --shape=kitex writes with what the tool
// of Kitex does for the same definition: the names and types of everything, and what
// one piece of business code makes of both.
package kitexshape

//go:generate go tool kitex -module github.com/fulmar-rpc/fulmar/test/kitexshape -gen-path gen/kitex -no-dependency-check ../../internal/emit/testdata/kitex/kitex.thrift
//go:generate fulmar gen --shape=kitex -o gen/fulmar ../../internal/emit/testdata/kitex/kitex.thrift
//go:generate go tool kitex -module github.com/fulmar-rpc/fulmar/test/kitexshape -gen-path gen/kitex -no-dependency-check -thrift template=slim -thrift enable_nested_struct ../../internal/emit/testdata/kitexnested/kitexnested.thrift
//go:generate fulmar gen --shape=kitex --kitex-nested -o gen/fulmar ../../internal/emit/testdata/kitexnested/kitexnested.thrift
//go:generate go run ./copy business gen/business
