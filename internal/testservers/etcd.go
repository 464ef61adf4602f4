package testservers

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
)

// NewEtcd returns an etcd of one member that keeps its data in a folder, encrypted if
// there are files for that. It is not started. Its leases live for a second at least.
func NewEtcd(folder string, files *TLSFiles) (*Server, error) {
	cache, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	program, err := exec.LookPath("etcd")
	if err != nil {
		if program, err = find("etcd", filepath.Join(cache, "etcd", "usr", "bin", "etcd")); err != nil {
			return nil, err
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	peers, err := freePort()
	if err != nil {
		return nil, err
	}
	scheme := "http"
	if files != nil {
		scheme = "https"
	}
	s := &Server{
		Address: "127.0.0.1:" + port, name: "etcd",
		data: filepath.Join(folder, "data"), log: filepath.Join(folder, "log"),
		answers: func(ctx context.Context, address string) error { return healthy(ctx, scheme+"://"+address) },
	}
	peer := "http://127.0.0.1:" + peers
	s.words = []string{
		program, "--data-dir", s.data, "--log-level", "error", "--logger", "zap",
		"--listen-client-urls", scheme + "://" + s.Address, "--advertise-client-urls", scheme + "://" + s.Address,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
		// The shortest lease is one and a half times the election timeout.
		"--heartbeat-interval", "50", "--election-timeout", "500",
	}
	if files != nil {
		// Without certificates of clients it still says whether it is healthy, there.
		metrics, err := freePort()
		if err != nil {
			return nil, err
		}
		s.words = append(s.words, "--cert-file", files.Certificate, "--key-file", files.Key,
			"--listen-metrics-urls", "http://127.0.0.1:"+metrics)
		if files.ClientAuthority != "" {
			s.words = append(s.words, "--client-cert-auth", "--trusted-ca-file", files.ClientAuthority)
		}
		s.answers = func(ctx context.Context, _ string) error { return healthy(ctx, "http://127.0.0.1:"+metrics) }
	}
	return s, nil
}

// healthy asks an etcd whether it serves requests.
func healthy(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	if err != nil {
		return err
	}
	// A transport of its own, because connections that are kept would be leaks.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{}}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err == nil && !strings.Contains(string(text), `"true"`) {
		err = fmt.Errorf("health: %s", text)
	}
	return err
}
