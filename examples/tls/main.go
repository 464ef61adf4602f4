// Command tls serves calls over TLS to clients that show a certificate, and makes two:
// one as billing, and one as nobody. Then the server gets a new certificate while it
// runs. The certificates are made when it starts, by an authority of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tls:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "fulmar-tls-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	office, err := openOffice(folder)
	if err != nil {
		return err
	}
	server, billing := office.files("orders"), office.files("billing")
	if err := errors.Join(office.issue(server, "orders"), office.issue(billing, "billing")); err != nil {
		return err
	}
	server.CheckInterval = time.Nanosecond // so that the example need not wait
	address, stop, err := serve(ctx, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	fmt.Fprintln(out, "billing:", call(ctx, address, fulmar.ClientTLS{Files: billing}))
	nobody := fulmar.CertificateFiles{Authorities: billing.Authorities}
	fmt.Fprintln(out, "nobody:", call(ctx, address, fulmar.ClientTLS{Files: nobody}))
	code, _, _ := strings.Cut(call(ctx, address, fulmar.ClientTLS{}), ":")
	fmt.Fprintln(out, "without TLS:", code)
	if err := office.issue(server, "orders"); err != nil {
		return err
	}
	fmt.Fprintln(out, "after a new certificate:", call(ctx, address, fulmar.ClientTLS{Files: billing}))
	return nil
}

// serve answers every call with the name of the caller. It returns where, and what ends
// it.
func serve(ctx context.Context, files fulmar.CertificateFiles) (address string, stop func() error, err error) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Address: "127.0.0.1:0",
		TLS:     fulmar.ServerTLS{Files: files},
		UnknownHandler: func(ctx context.Context, _ fulmar.Raw) (fulmar.Raw, error) {
			call, _ := fulmar.CallFrom(ctx)
			identity, _ := call.Identity()
			return textReply("hello, " + identity.CommonName()), nil
		},
	})
	if err != nil {
		return "", nil, err
	}
	listening, err := server.Listen()
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	return listening.String(), func() error { cancel(); return <-served }, nil
}

// call makes one call and says what came of it.
func call(ctx context.Context, address string, secure fulmar.ClientTLS) string {
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address, TLS: secure})
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	method, err := fulmar.RawMethod("Orders", "greet", false)
	if err != nil {
		return err.Error()
	}
	request, reply := fulmar.Raw{0}, fulmar.Raw(nil)
	var failed *fulmar.Error
	if err := client.Call(ctx, method, &request, &reply); errors.As(err, &failed) {
		return fmt.Sprintf("%s: %s", failed.Code(), failed.Message())
	}
	return string(reply[textHead : len(reply)-1])
}

// textHead is the length of what stands before the text in a reply: the type and the
// number of the field, and the length of the text.
const textHead = 7

// textReply is a struct with a text in its field 0, as results have it.
func textReply(text string) fulmar.Raw {
	n := len(text)
	reply := fulmar.Raw{11, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	return append(append(reply, text...), 0)
}

// files says where certificate and key of that name are.
func (o *office) files(name string) fulmar.CertificateFiles {
	return fulmar.CertificateFiles{
		Certificate: filepath.Join(o.folder, name+".pem"),
		Key:         filepath.Join(o.folder, name+".key"),
		Authorities: filepath.Join(o.folder, "authorities.pem"),
	}
}
