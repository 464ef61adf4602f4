// Command fulmar-gen-validate is the plugin of package validate as a program:
//
//	fulmar gen --plugin validate orders.thrift
package main

import (
	"os"

	"github.com/fulmar-rpc/fulmar/contrib/plugins/validate"
	"github.com/fulmar-rpc/fulmar/gen"
)

func main() { os.Exit(gen.PluginMain(os.Stdin, os.Stdout, os.Stderr, validate.New)) }
