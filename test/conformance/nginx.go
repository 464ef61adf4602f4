package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// nginx is a running nginx between clients of Fulmar and servers of Fulmar, that speaks
// HTTP/2 on both sides.
type nginx struct {
	command *exec.Cmd
	folder  string
	// plain and secure are where it listens, without TLS and with it.
	plain, secure string
	output        bytes.Buffer
	ended         chan error
	killed        sync.Once
}

// nginxConfiguration is what an nginx for gRPC needs: HTTP/2 to the clients, grpc_pass to the
// servers, no limit for the length of all that a stream sends, and time for streams on which
// nothing happens for a while.
const nginxConfiguration = `
daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr warn;
events { worker_connections 512; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	upstream plain { %[2]s keepalive 16; }
	upstream secure { server %[3]s; keepalive 16; }
	server {
		listen %[4]s http2;
		client_max_body_size 0;
		grpc_read_timeout 1h;
		grpc_send_timeout 1h;
		location / { grpc_pass grpc://plain; }
	}
	server {
		listen %[5]s ssl http2;
		ssl_certificate %[6]s;
		ssl_certificate_key %[7]s;
		client_max_body_size 0;
		grpc_read_timeout 1h;
		grpc_send_timeout 1h;
		location / { grpc_pass grpcs://secure; }
	}
}
`

// startNginx starts program before the servers at some addresses without TLS, and one with it.
func startNginx(program string, files identity, plain []string, secure string) (*nginx, error) {
	folder, err := os.MkdirTemp("", "nginx")
	if err != nil {
		return nil, err
	}
	// Another program may take a port that was free.
	for range 5 {
		n := &nginx{folder: folder, ended: make(chan error, 1)}
		if n.plain, err = freeAddress(); err == nil {
			n.secure, err = freeAddress()
		}
		if err == nil {
			err = n.start(program, files, plain, secure)
		}
		if err == nil {
			return n, nil
		}
	}
	return nil, errors.Join(err, os.RemoveAll(folder))
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (n *nginx) start(program string, files identity, plain []string, secure string) error {
	var servers strings.Builder
	for _, address := range plain {
		fmt.Fprintf(&servers, "server %s max_fails=0; ", address)
	}
	configuration := fmt.Sprintf(nginxConfiguration, n.folder, servers.String(), secure, n.plain, n.secure, files.certificate, files.key)
	path := filepath.Join(n.folder, "nginx.conf")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		return err
	}
	n.command = exec.Command(program, "-p", n.folder, "-c", path)
	n.command.Stdout, n.command.Stderr = &n.output, &n.output
	if err := n.command.Start(); err != nil {
		return fmt.Errorf("nginx: %w", err)
	}
	go func() { n.ended <- n.command.Wait() }()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-n.ended:
			return fmt.Errorf("nginx ended: %w\n%s", err, n.output.Bytes())
		default:
		}
		if conn, err := net.Dial("tcp", n.secure); err == nil {
			return conn.Close()
		}
	}
	n.kill()
	return fmt.Errorf("nginx does not listen:\n%s", n.output.Bytes())
}

// kill ends it at once, if that has not happened.
func (n *nginx) kill() {
	n.killed.Do(func() {
		_ = n.command.Process.Kill()
		<-n.ended
	})
}

// close ends it, and returns what it had to complain about.
func (n *nginx) close() (complaints string, err error) {
	n.kill()
	return n.output.String(), os.RemoveAll(n.folder)
}

// behindNginx runs cases with clients and servers of Fulmar and an nginx in between.
func behindNginx(ctx context.Context, program string, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "identity")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	files, err := newIdentity(folder)
	if err != nil {
		return err
	}
	left := make(chan error, 100)
	var servers [3]*behind
	for i, files := range []identity{{}, {}, files} {
		if servers[i], err = newBehind(files, left); err != nil {
			return err
		}
		defer servers[i].stop()
	}
	first, second, secure := servers[0], servers[1], servers[2]
	proxy, err := startNginx(program, files, []string{first.address, second.address}, secure.address)
	if err != nil {
		return err
	}
	defer func() {
		complaints, closing := proxy.close()
		if err != nil {
			err = fmt.Errorf("%w\nnginx said:\n%s", err, complaints)
		}
		err = errors.Join(err, closing)
	}()
	for name, config := range map[string]fulmar.ClientConfig{
		"h2c": {Target: proxy.plain, Protocol: fulmar.GRPC},
		"TLS": {Target: proxy.secure, Protocol: fulmar.GRPC, TLS: fulmar.ClientTLS{Files: fulmar.CertificateFiles{Authorities: files.certificate}}},
	} {
		config.ConnectTimeout, config.Timeout = time.Minute, time.Minute
		client, err := fulmar.NewClient(config)
		if err != nil {
			return err
		}
		err = errors.Join(throughProxy(ctx, client, out, "nginx, "+name), client.Close())
		if err == nil {
			err = canceled(left)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(restartBehindProxy(ctx, proxy.plain, first, second, out), proxyFails(ctx, proxy, second, out))
}
