package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/fulmar-rpc/fulmar"
)

// revocations is what a program has that wants to refuse certificates before they
// expire: a list that their authority signs, read again when the process is told to.
type revocations struct {
	file string
	// signer is a file with the certificate of the authority.
	signer string
	serial atomic.Pointer[map[string]bool]
}

// load reads the list.
func (r *revocations) load() error {
	list, err := readPEM(r.file, x509.ParseRevocationList)
	if err != nil {
		return err
	}
	signer, err := readPEM(r.signer, x509.ParseCertificate)
	if err != nil {
		return err
	}
	if err := list.CheckSignatureFrom(signer); err != nil {
		return err
	}
	serials := map[string]bool{}
	for _, entry := range list.RevokedCertificateEntries {
		serials[entry.SerialNumber.String()] = true
	}
	r.serial.Store(&serials)
	return nil
}

func readPEM[T any](file string, parse func([]byte) (T, error)) (value T, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return value, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return value, errors.New(file + ": nothing is in it")
	}
	return parse(block.Bytes)
}

func (r *revocations) has(serial *big.Int) bool { return (*r.serial.Load())[serial.String()] }

var errRevoked = errors.New("the certificate was revoked")

// verify is for tls.Config.VerifyConnection: it refuses new connections.
func (r *revocations) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) > 0 && r.has(state.PeerCertificates[0].SerialNumber) {
		return errRevoked
	}
	return nil
}

// intercept refuses calls on connections that were open before.
func (r *revocations) intercept(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
	served, _ := fulmar.CallFrom(ctx)
	if caller, known := served.Identity(); !known || r.has(caller.Certificate().SerialNumber) {
		return fulmar.NewError(fulmar.PermissionDenied, errRevoked.Error())
	}
	return next(ctx, call)
}

// apply puts it into a configuration. SIGHUP reads the list again.
func (r *revocations) apply(config *fulmar.ServerConfig) error {
	if err := r.load(); err != nil {
		return err
	}
	config.TLS.Config = &tls.Config{VerifyConnection: r.verify}
	config.Interceptors = append(config.Interceptors, r.intercept)
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	go func() {
		// As long as the process lives, which ends with what it serves.
		for range again {
			_ = r.load()
		}
	}()
	return nil
}
