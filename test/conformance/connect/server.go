package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/fulmar-rpc/fulmar"
	conformance "github.com/fulmar-rpc/fulmar/test/conformance/gen/connectrpc/conformance/v1"
)

// drain is how long running calls may go on when the suite ends the server: it waits for 5 s
// until it kills it.
const drain = time.Second

// serve starts the server that it is asked for, and serves until ctx ends.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var request conformance.ServerCompatRequest
	if err := readMessage(in, &request); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	config := fulmar.ServerConfig{
		Address:         "127.0.0.1:0",
		Protocols:       []fulmar.Protocol{fulmar.GRPC},
		MaxMessageBytes: int(request.GetMessageReceiveLimit()),
		MaxSendBytes:    -1, // The limit is for what is received.
		DrainTimeout:    drain,
		Logger:          logger(),
	}
	if request.GetUseTls() {
		secure, err := serverTLS(&request)
		if err != nil {
			return err
		}
		config.TLS.Config = secure
	}
	server, err := fulmar.NewServer(config)
	if err != nil {
		return err
	}
	conformance.RegisterConformanceServiceServer(server, service{})
	address, err := server.Listen()
	if err != nil {
		return err
	}
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return fmt.Errorf("the server listens on %v, which has no port", address)
	}
	// Calls wait in the socket until Serve runs.
	response := conformance.ServerCompatResponse{Host: tcp.IP.String(), Port: uint32(tcp.Port)}
	if request.GetUseTls() {
		response.PemCert = request.GetServerCreds().GetCert()
	}
	if err := writeMessage(out, &response); err != nil {
		return errors.Join(fmt.Errorf("writing the response: %w", err), server.Close())
	}
	return server.Serve(ctx)
}

// serverTLS returns what a request says of TLS.
func serverTLS(request *conformance.ServerCompatRequest) (*tls.Config, error) {
	own, err := tls.X509KeyPair(request.GetServerCreds().GetCert(), request.GetServerCreds().GetKey())
	if err != nil {
		return nil, fmt.Errorf("the certificate of the server: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{own}}
	if known := request.GetClientTlsCert(); len(known) > 0 {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		if config.ClientCAs, err = trusting(known); err != nil {
			return nil, fmt.Errorf("the certificate of clients: %w", err)
		}
	}
	return config, nil
}

// trusting returns a pool with the certificates of a text in PEM.
func trusting(text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("no certificate in PEM")
	}
	return pool, nil
}
