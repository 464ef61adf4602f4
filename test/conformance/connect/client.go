package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	conformance "github.com/fulmar-rpc/fulmar/test/conformance/gen/connectrpc/conformance/v1"
)

// atOnce is how many calls are in progress. Most of the time of many is spent waiting.
const atOnce = 16

// connectPatience is for machines on which the reference server, which has just begun, gets
// no processor.
const connectPatience = 5 * time.Second

// call makes the calls that it reads, several at a time, until there are no more.
func call(ctx context.Context, in io.Reader, out io.Writer) error {
	c := caller{clients: map[string]*fulmar.Client{}}
	reader := bufio.NewReader(in)
	var running sync.WaitGroup
	room := make(chan struct{}, atOnce)
	var failure error
	for ctx.Err() == nil {
		request := new(conformance.ClientCompatRequest)
		if err := readMessage(reader, request); err != nil {
			if err != io.EOF {
				failure = fmt.Errorf("reading a request: %w", err)
			}
			break
		}
		room <- struct{}{}
		running.Go(func() {
			defer func() { <-room }()
			c.report(out, c.answer(ctx, request))
		})
	}
	running.Wait()
	return errors.Join(failure, c.close())
}

// caller has the clients, each of which is for all calls that are alike.
type caller struct {
	mu      sync.Mutex
	clients map[string]*fulmar.Client
	written error
}

// answer makes a call, and returns what came of it.
func (c *caller) answer(ctx context.Context, request *conformance.ClientCompatRequest) *conformance.ClientCompatResponse {
	response := &conformance.ClientCompatResponse{TestName: request.GetTestName()}
	result, err := c.make(ctx, request)
	if err != nil {
		response.Result = &conformance.ClientCompatResponse_Error{Error: &conformance.ClientErrorResult{Message: err.Error()}}
	} else {
		response.Result = &conformance.ClientCompatResponse_Response{Response: result}
	}
	return response
}

func (c *caller) make(ctx context.Context, request *conformance.ClientCompatRequest) (*conformance.ClientResponseResult, error) {
	client, err := c.client(request)
	if err != nil {
		return nil, err
	}
	for key, values := range pairs(request.GetRequestHeaders()) {
		ctx = fulmar.WithTransient(ctx, key, values...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := attempt{
		request: request,
		client:  conformance.NewConformanceServiceClient(client),
		cancel:  cancel,
		result:  new(conformance.ClientResponseResult),
	}
	if request.TimeoutMs != nil {
		a.options = append(a.options, fulmar.Timeout(time.Duration(request.GetTimeoutMs())*time.Millisecond))
	}
	return a.result, a.run(ctx)
}

// client returns the client for a request.
func (c *caller) client(request *conformance.ClientCompatRequest) (*fulmar.Client, error) {
	address := net.JoinHostPort(request.GetHost(), strconv.FormatUint(uint64(request.GetPort()), 10))
	key := fmt.Sprintf("%s %v %d %q %q", address, request.GetCompression(), request.GetMessageReceiveLimit(), request.GetServerTlsCert(), request.GetClientTlsCreds().GetCert())
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.clients[key]; client != nil {
		return client, nil
	}
	config := fulmar.ClientConfig{
		Target:          address,
		Protocol:        fulmar.GRPC,
		Timeout:         -1, // the suite says which calls have one
		ConnectTimeout:  connectPatience,
		MaxMessageBytes: int(request.GetMessageReceiveLimit()),
		MaxSendBytes:    -1, // The limit is for what is received.
		Logger:          logger(),
	}
	switch request.GetCompression() {
	case conformance.Compression_COMPRESSION_UNSPECIFIED, conformance.Compression_COMPRESSION_IDENTITY:
	case conformance.Compression_COMPRESSION_GZIP:
		config.Compression = "gzip"
	default:
		return nil, fmt.Errorf("compression %v is not in the configuration of the suite", request.GetCompression())
	}
	if len(request.GetServerTlsCert()) > 0 {
		secure, err := clientTLS(request)
		if err != nil {
			return nil, err
		}
		config.TLS.Config = secure
	}
	client, err := fulmar.NewClient(config)
	if err != nil {
		return nil, err
	}
	c.clients[key] = client
	return client, nil
}

// clientTLS returns what a request says of TLS.
func clientTLS(request *conformance.ClientCompatRequest) (*tls.Config, error) {
	roots, err := trusting(request.GetServerTlsCert())
	if err != nil {
		return nil, fmt.Errorf("the certificate of the server: %w", err)
	}
	config := &tls.Config{RootCAs: roots}
	if own := request.GetClientTlsCreds(); own != nil {
		certificate, err := tls.X509KeyPair(own.GetCert(), own.GetKey())
		if err != nil {
			return nil, fmt.Errorf("the certificate of the client: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config, nil
}

// report writes what came of a call. Nobody is told by the suite that a result was lost, so
// close does.
func (c *caller) report(out io.Writer, response *conformance.ClientCompatResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := writeMessage(out, response); err != nil && c.written == nil {
		c.written = fmt.Errorf("writing a response: %w", err)
	}
}

// close ends all connections.
func (c *caller) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	failures := []error{c.written}
	for _, client := range c.clients {
		failures = append(failures, client.Close())
	}
	return errors.Join(failures...)
}
