package main

import (
	"fmt"
	"net"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/fulmar-rpc/fulmar/test/apache/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/apache/gen/rules"
)

// socketTimeout bounds dialling and each read and write of both sides.
const socketTimeout = time.Minute

func configuration() *thrift.TConfiguration {
	return &thrift.TConfiguration{ConnectTimeout: socketTimeout, SocketTimeout: socketTimeout}
}

func transportFactory(name string) (thrift.TTransportFactory, error) {
	switch name {
	case "bare":
		return thrift.NewTBufferedTransportFactory(4096), nil
	case "framed":
		return thrift.NewTFramedTransportFactoryConf(thrift.NewTTransportFactory(), configuration()), nil
	}
	return nil, fmt.Errorf("no transport %q", name)
}

// serve serves until stop is closed.
func serve(listener net.Listener, transport string, stop <-chan struct{}) error {
	factory, err := transportFactory(transport)
	if err != nil {
		return err
	}
	processor := everything.NewEverythingProcessor(rules.New())
	server := thrift.NewTSimpleServer4(processor, &serverTransport{listener}, factory, thrift.NewTBinaryProtocolFactoryConf(configuration()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve() }()
	select {
	case err := <-ended:
		return err
	case <-stop:
		// Stop would wait for clients to close their connections, and the process
		// ends anyway.
		return nil
	}
}

// serverTransport accepts from a listener that is there already: Apache's own
// server socket makes it itself, and its port is known too late.
type serverTransport struct {
	listener net.Listener
}

var _ thrift.TServerTransport = (*serverTransport)(nil)

func (s *serverTransport) Listen() error { return nil }

func (s *serverTransport) Accept() (thrift.TTransport, error) {
	conn, err := s.listener.Accept()
	if err != nil {
		return nil, err
	}
	return thrift.NewTSocketFromConnConf(conn, configuration()), nil
}

func (s *serverTransport) Close() error { return s.listener.Close() }

func (s *serverTransport) Interrupt() error { return s.listener.Close() }
