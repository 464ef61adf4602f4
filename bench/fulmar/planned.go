package main

import (
	"crypto/tls"
	"errors"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// errPlanned is what Fulmar says where its peers have something that it has not
// yet. The cases in question are those that rpc.Planned returns.
var errPlanned = errors.New("planned, not there yet")

// secureServer and secureClient let connections be secure.
func secureServer(*fulmar.ServerConfig, *tls.Config) error { return errPlanned }
func secureClient(*fulmar.ClientConfig, *tls.Config) error { return errPlanned }

// local returns a client of a server in this process, which ends with the client.
func local(rpc.Played) (rpc.Client, error) { return nil, errPlanned }
