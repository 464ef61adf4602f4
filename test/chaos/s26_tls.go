package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// fourProtocols are those that calls of Thrift travel over: TTHeader shares
// connections, the others have one for each call.
func fourProtocols() []fulmar.Protocol {
	return []fulmar.Protocol{fulmar.TTHeader, fulmar.TTHeaderFramed, fulmar.Framed, fulmar.Bare}
}

// secured is servers that show and ask for certificates, and who signs them.
type secured struct {
	closing   *closing
	folder    func(string) string
	authority *authority
	other     *authority
	ids       callers
	servers   int
	journals  []string
	books     []*ledger.Book
}

func newSecured(closing *closing) (*secured, error) {
	folder, remove, err := scratch()
	if err != nil {
		return nil, err
	}
	closing.add(remove)
	s := &secured{closing: closing, folder: folder}
	if s.authority, err = newAuthority("authority"); err != nil {
		return nil, err
	}
	s.other, err = newAuthority("other")
	return s, err
}

// start starts a server with a certificate, whose callers need one too.
func (s *secured) start(own issued, change func(*role)) (*process, fulmar.CertificateFiles, error) {
	s.servers++
	name := fmt.Sprintf("server%d", s.servers)
	files, err := store(s.folder, name, own, s.authority)
	if err != nil {
		return nil, files, err
	}
	r := role{Journal: s.folder(name + ".journal"), Config: fulmar.ServerConfig{Address: "127.0.0.1:0", TLS: fulmar.ServerTLS{Files: files}}}
	if change != nil {
		change(&r)
	}
	server, err := start(r, nil)
	if err != nil {
		return nil, files, err
	}
	s.closing.add(server.kill)
	s.journals = append(s.journals, r.Journal)
	return server, files, nil
}

// caller returns one with a connection of its own.
func (s *secured) caller(target string, protocol fulmar.Protocol, secure fulmar.ClientTLS, change func(*fulmar.ClientConfig)) (*caller, error) {
	config := fulmar.ClientConfig{Target: target, Protocol: protocol, TLS: secure, Timeout: -1, ConnectTimeout: 4 * time.Second}
	if change != nil {
		change(&config)
	}
	api, err := client(s.closing, config)
	if err != nil {
		return nil, err
	}
	one := &caller{api: api, book: s.ids.book(), limit: 5 * time.Second}
	one.request.Payload = make([]byte, 100)
	s.books = append(s.books, one.book)
	return one, nil
}

// verdict compares what callers were told with what ran.
func (s *secured) verdict() (ledger.Verdict, error) {
	executions := &ledger.Executions{}
	for _, journal := range s.journals {
		if err := executions.Read(journal); err != nil {
			return ledger.Verdict{}, err
		}
	}
	return ledger.Judge(s.books, executions, 0), nil
}

// securedPart is a part of S26, with servers of its own.
type securedPart func(context.Context, size, *secured, *figures) error

// secure is S26: certificates that are not good, peers that do not speak TLS or begin
// and do not go on, and certificates that change.
func secure(ctx context.Context, size size) (seen figures, err error) {
	for _, part := range []securedPart{refusals, revocation, plaintext, renegotiation, halfHandshakes, rotation} {
		var closing closing
		s, err := newSecured(&closing)
		if err == nil {
			err = part(ctx, size, s, &seen)
		}
		closing.close()
		if err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// bad are changes that make a certificate worthless.
func bad() map[string]func(*x509.Certificate) {
	return map[string]func(*x509.Certificate){
		"expired":       func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
		"not yet valid": func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) },
		"wrong name":    func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"elsewhere.example.org"} },
	}
}

// refusals has servers and clients with certificates that are not good.
func refusals(ctx context.Context, size size, s *secured, seen *figures) error {
	good, err := s.authority.issue(nil)
	if err != nil {
		return err
	}
	foreign, err := s.other.issue(nil)
	if err != nil {
		return err
	}
	server, _, err := s.start(good, nil)
	if err != nil {
		return err
	}
	trusting := fulmar.CertificateFiles{}
	if trusting, err = store(s.folder, "client", good, s.authority); err != nil {
		return err
	}
	wrong, kinds := 0, 0
	try := func(kind, target string, files fulmar.CertificateFiles) error {
		kinds++
		n, err := s.refused(ctx, kind, target, fulmar.ClientTLS{Files: files}, seen)
		wrong += n
		return err
	}
	shown := map[string]issued{"wrong authority": foreign}
	for kind, change := range bad() {
		if shown[kind], err = s.authority.issue(change); err != nil {
			return err
		}
	}
	for kind, certificate := range shown {
		worthless, _, err := s.start(certificate, nil)
		if err != nil {
			return err
		}
		if err := try("server "+kind, worthless.Address, trusting); err != nil {
			return err
		}
		if kind == "wrong name" {
			continue // Nobody asks for the name of a client.
		}
		files, err := store(s.folder, "client", certificate, s.authority)
		if err == nil {
			files.Certificate, files.Key = s.folder("bad.pem"), s.folder("bad.pem")
			err = errors.Join(replace(files.Certificate, certificate.pem), try("client "+kind, server.Address, files))
		}
		if err != nil {
			return err
		}
	}
	if err := try("client without one", server.Address, fulmar.CertificateFiles{Authorities: trusting.Authorities}); err != nil {
		return err
	}
	seen.note("bad certificates %d kinds over %d protocols", kinds, len(fourProtocols()))
	seen.most("not refused as it should be", float64(wrong), 0, "")
	return s.note(seen)
}

// refused makes calls that must not get through, over each protocol, and returns how
// many are told something else than that they were refused in the handshake.
func (s *secured) refused(ctx context.Context, kind, target string, secure fulmar.ClientTLS, seen *figures) (wrong int, err error) {
	for _, protocol := range fourProtocols() {
		one, err := s.caller(target, protocol, secure, nil)
		if err != nil {
			return wrong, fmt.Errorf("%s: %w", kind, err)
		}
		call := one.call(ctx)
		var failed *fulmar.Error
		if !errors.As(call.Err, &failed) || failed.Code() != fulmar.Unavailable || failed.Executed() != fulmar.ExecutedNo || failed.Phase() != fulmar.PhaseHandshake {
			wrong++
			seen.note("%s over %v: %v", kind, protocol, call.Err)
		}
	}
	return wrong, nil
}

// note adds what the ledger says.
func (s *secured) note(seen *figures) error {
	verdict, err := s.verdict()
	if err == nil {
		seen.judged(verdict)
	}
	return err
}

// revocation takes the certificate of a client back that has connections open.
func revocation(ctx context.Context, size size, s *secured, seen *figures) error {
	good, err := s.authority.issue(nil)
	if err != nil {
		return err
	}
	lost, err := s.authority.issue(nil)
	if err != nil {
		return err
	}
	list := func(serials ...*big.Int) error {
		text, err := s.authority.revoked(serials...)
		return errors.Join(err, replace(s.folder("revoked.pem"), text))
	}
	if err := list(); err != nil {
		return err
	}
	server, _, err := s.start(good, func(r *role) { r.Revoked = s.folder("revoked.pem") })
	if err != nil {
		return err
	}
	honest, err := store(s.folder, "honest", good, s.authority)
	if err != nil {
		return err
	}
	thief, err := store(s.folder, "thief", lost, s.authority)
	if err != nil {
		return err
	}
	var callers []*caller
	for _, files := range []fulmar.CertificateFiles{honest, thief} {
		for _, protocol := range fourProtocols() {
			one, err := s.caller(server.Address, protocol, fulmar.ClientTLS{Files: files}, nil)
			if err != nil {
				return err
			}
			if call := one.call(ctx); call.Err != nil {
				return fmt.Errorf("before: %w", call.Err)
			}
			callers = append(callers, one)
		}
	}
	if err := list(lost.serial); err != nil {
		return err
	}
	server.signal(syscall.SIGHUP)
	start := time.Now()
	open := 0 // Connections of the thief on which calls are served, or fail for something else.
	for _, one := range callers[4:] {
		call := one.call(ctx)
		for call.Err == nil && time.Since(start) < 5*time.Second {
			call = one.call(ctx)
		}
		// The code is lost where there is no header.
		open += boolToInt(call.Err == nil || !strings.Contains(call.Err.Error(), errRevoked.Error()))
	}
	seen.note("revoked client refused on open connections after %.3g ms", ms(time.Since(start)))
	fresh, err := s.refused(ctx, "client revoked", server.Address, fulmar.ClientTLS{Files: thief}, seen)
	if err != nil {
		return err
	}
	failed := 0
	for _, one := range callers[:4] {
		failed += boolToInt(one.call(ctx).Err != nil)
	}
	seen.most("served all the same", float64(open+fresh), 0, "")
	seen.most("others failed", float64(failed), 0, "")
	return s.note(seen)
}

// plaintext has clients without TLS call a server that speaks nothing else, and clients
// with TLS one that has none.
func plaintext(ctx context.Context, size size, s *secured, seen *figures) error {
	good, err := s.authority.issue(nil)
	if err != nil {
		return err
	}
	server, _, err := s.start(good, nil)
	if err != nil {
		return err
	}
	files, err := store(s.folder, "client", good, s.authority)
	if err != nil {
		return err
	}
	wrong, err := s.refused(ctx, "plaintext", server.Address, fulmar.ClientTLS{}, seen)
	if err != nil {
		return err
	}
	plain, err := start(role{Config: fulmar.ServerConfig{Address: "127.0.0.1:0"}}, nil)
	if err != nil {
		return err
	}
	s.closing.add(plain.kill)
	n, err := s.refused(ctx, "TLS at a server without", plain.Address, fulmar.ClientTLS{Files: files}, seen)
	if err != nil {
		return err
	}
	n += oldVersion(server.Address, s.authority)
	seen.most("plaintext and TLS mixed up, not refused as it should be", float64(wrong+n), 0, "")
	return s.note(seen)
}

// oldVersion is 1 if a server speaks TLS 1.1.
func oldVersion(address string, a *authority) int {
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: a.pool(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	if err == nil {
		_ = conn.Close()
	}
	return boolToInt(err == nil)
}
