// Command fulmar-gen-mock is the plugin of package mock as a program:
//
//	fulmar gen --plugin mock=prefix=Fake orders.thrift
package main

import (
	"os"

	"github.com/fulmar-rpc/fulmar/contrib/plugins/mock"
	"github.com/fulmar-rpc/fulmar/gen"
)

func main() { os.Exit(gen.PluginMain(os.Stdin, os.Stdout, os.Stderr, mock.New)) }
