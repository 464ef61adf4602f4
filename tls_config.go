package fulmar

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// ApplicationProtocol is the name that clients offer and servers accept in the TLS
// handshake (ALPN), unless tls.Config.NextProtos has others. It stands for everything
// that a server tells apart by the first bytes. Peers that offer no name are served.
const ApplicationProtocol = "fulmar"

// ServerTLS secures the connections of a server with TLS 1.2 or later. The zero value
// is no TLS.
type ServerTLS struct {
	// Files holds the certificate of the server. With Authorities clients must have a
	// certificate that one of those has signed (mTLS); see Call.Identity.
	Files CertificateFiles
	// ClientsMayBeUnknown serves clients without a certificate as well, although Files
	// has Authorities. Default: their handshakes fail.
	ClientsMayBeUnknown bool
	// AllowPlaintext serves clients without TLS on the same port: the first byte tells
	// them apart. Default: they are refused.
	AllowPlaintext bool
	// HandshakeTimeout closes connections whose handshake is not complete in time.
	// Default 10 s (HandshakeTimeout).
	HandshakeTimeout time.Duration
	// MaxHandshakes bounds those that go on at once; others wait. Default 256
	// (Handshakes).
	MaxHandshakes int
	// Config says everything else, or all of it. It is copied. Its callbacks run on
	// goroutines that may wait. What it does not say is as in a server of package
	// crypto/tls, but for the cipher suites of TLS 1.2, the curves and the application
	// protocol. VerifyConnection and VerifyPeerCertificate are the places to refuse
	// certificates that were revoked: where clients are asked for certificates, session
	// tickets are off, so both see every connection. What GetConfigForClient returns is
	// taken as it is.
	Config *tls.Config `json:"-"`
}

// ClientTLS secures the connections of a client with TLS 1.2 or later. The zero value
// is no TLS.
type ClientTLS struct {
	// Enable switches it on. Files and Config do as well.
	Enable bool
	// Files holds who may have signed the server's certificate, and the certificate of
	// this client, if it needs one. Default: who the system trusts, and none.
	Files CertificateFiles
	// ServerName is the name or the address that the server's certificate must have.
	// Default: the host that is called. Required for Unix sockets.
	ServerName string
	// Config says everything else, or all of it. It is copied.
	Config *tls.Config `json:"-"`
}

func (c ServerTLS) enabled() bool { return c.Config != nil || !c.Files.isZero() }
func (c ClientTLS) enabled() bool { return c.Enable || c.Config != nil || !c.Files.isZero() }

// cipherSuites are those of TLS 1.2 that keep old traffic secret when a key is lost and
// notice every change (AEAD). TLS 1.3 has no others.
func cipherSuites() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}

// baseConfig returns a copy of what the user gave with our defaults.
func baseConfig(given *tls.Config) *tls.Config {
	config := &tls.Config{}
	if given != nil {
		config = given.Clone()
	}
	if config.MinVersion == 0 {
		config.MinVersion = tls.VersionTLS12
	}
	if config.CipherSuites == nil {
		config.CipherSuites = cipherSuites()
	}
	if config.CurvePreferences == nil {
		config.CurvePreferences = []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256, tls.CurveP384}
	}
	if config.NextProtos == nil {
		config.NextProtos = []string{ApplicationProtocol}
	}
	config.DynamicRecordSizingDisabled = true
	return config
}

// checkConfig returns what is wrong with a tls.Config of the user.
func checkConfig(config *tls.Config) (problems []error) {
	if config == nil {
		return nil
	}
	if config.MinVersion != 0 && config.MinVersion < tls.VersionTLS12 {
		problems = append(problems, fmt.Errorf("Config.MinVersion: %s is not secure (at least TLS 1.2)", tls.VersionName(config.MinVersion)))
	}
	if config.MaxVersion != 0 && config.MaxVersion < max(config.MinVersion, tls.VersionTLS12) {
		problems = append(problems, fmt.Errorf("Config.MaxVersion: %s is less than the least (%s)", tls.VersionName(config.MaxVersion), tls.VersionName(max(config.MinVersion, tls.VersionTLS12))))
	}
	good := cipherSuites()
	for _, suite := range config.CipherSuites {
		if !slices.Contains(good, suite) {
			problems = append(problems, fmt.Errorf("Config.CipherSuites: %s is not allowed (ECDHE with AES-GCM or ChaCha20-Poly1305 is)", tls.CipherSuiteName(suite)))
		}
	}
	if config.Renegotiation != tls.RenegotiateNever {
		problems = append(problems, errors.New("Config.Renegotiation: must be RenegotiateNever"))
	}
	return problems
}

// labelled says where problems are.
func labelled(config string, problems []error) []error {
	for i, problem := range problems {
		problems[i] = fmt.Errorf("%s: TLS: %w", config, problem)
	}
	return problems
}

// check returns every problem.
func (c ServerTLS) check() []error {
	if !c.enabled() {
		if c != (ServerTLS{}) {
			return []error{errors.New("neither Files nor Config is set, so there is no TLS")}
		}
		return nil
	}
	problems := checkConfig(c.Config)
	given := c.Config
	if given == nil {
		given = &tls.Config{}
	}
	if !c.Files.isZero() {
		if _, _, err := c.Files.read(); err != nil {
			problems = append(problems, fmt.Errorf("in Files: %w", err))
		}
	}
	own := len(given.Certificates) > 0 || given.GetCertificate != nil
	switch {
	case c.Files.Certificate != "" && own:
		problems = append(problems, errors.New("Files.Certificate and Config have certificates both"))
	case c.Files.Certificate == "" && !own && given.GetConfigForClient == nil:
		problems = append(problems, errors.New("no certificate: neither Files.Certificate nor Config has one"))
	}
	switch {
	case c.Files.Authorities == "":
		if c.ClientsMayBeUnknown {
			problems = append(problems, errors.New("ClientsMayBeUnknown: Files.Authorities is not set, so none is known"))
		}
	case given.GetConfigForClient != nil:
		problems = append(problems, errors.New("Files.Authorities and Config.GetConfigForClient exclude each other"))
	case given.ClientCAs != nil || given.ClientAuth != tls.NoClientCert:
		problems = append(problems, errors.New("Files.Authorities and Config say both which clients are known (ClientCAs, ClientAuth)"))
	}
	return append(problems, checkShort("HandshakeTimeout", c.HandshakeTimeout)...)
}

func checkShort(name string, d time.Duration) []error {
	if d > 0 && d < limits.ConfigDurationMin {
		return []error{fmt.Errorf("%s: %v is too short; was a unit forgotten? (at least %v)", name, d, limits.ConfigDurationMin)}
	}
	return nil
}

// build returns what listeners get, nil for no TLS.
func (c ServerTLS) build(logger *slog.Logger, http2 bool) (*tls.Config, error) {
	if !c.enabled() {
		return nil, nil
	}
	config := baseConfig(c.Config)
	if http2 && (c.Config == nil || c.Config.NextProtos == nil) {
		config.NextProtos = append(config.NextProtos, http2Protocol)
	}
	// A client that comes back with a ticket would be known by what was true when it got
	// that: VerifyPeerCertificate is not called again. Connections last, so tickets save
	// little.
	known := config.ClientAuth != tls.NoClientCert || c.Files.Authorities != ""
	config.SessionTicketsDisabled = config.SessionTicketsDisabled || known
	if c.Files.isZero() {
		return config, nil
	}
	certificates, err := LoadCertificates(c.Files, logger)
	if err != nil {
		return nil, err
	}
	if c.Files.Certificate != "" {
		config.GetCertificate = certificates.GetCertificate
	}
	if c.Files.Authorities == "" {
		return config, nil
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	if c.ClientsMayBeUnknown {
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	inner := config.Clone()
	latest := newestConfig{certificates: certificates, base: inner}
	config.ClientCAs = certificates.Authorities()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return latest.get(), nil }
	return config, nil
}

// newestConfig is a tls.Config with the authorities that a file has now.
type newestConfig struct {
	certificates *Certificates
	base         *tls.Config

	mu      sync.Mutex
	current *tls.Config
}

func (n *newestConfig) get() *tls.Config {
	authorities := n.certificates.Authorities()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current == nil || n.current.ClientCAs != authorities {
		n.current = n.base.Clone()
		n.current.ClientCAs = authorities
	}
	return n.current
}

// check returns every problem. unix says that the target is a socket without a name.
func (c ClientTLS) check(unix bool) []error {
	if !c.enabled() {
		if c != (ClientTLS{}) {
			return []error{errors.New("ServerName is set, but Enable is not")}
		}
		return nil
	}
	problems := checkConfig(c.Config)
	if !c.Files.isZero() {
		if _, _, err := c.Files.read(); err != nil {
			problems = append(problems, fmt.Errorf("in Files: %w", err))
		}
	}
	name, skip := c.ServerName, false
	if config := c.Config; config != nil {
		skip = config.InsecureSkipVerify
		if name == "" {
			name = config.ServerName
		}
		if c.Files.Certificate != "" && (len(config.Certificates) > 0 || config.GetClientCertificate != nil) {
			problems = append(problems, errors.New("Files.Certificate and Config have certificates both"))
		}
		if c.Files.Authorities != "" && config.RootCAs != nil {
			problems = append(problems, errors.New("Files.Authorities and Config.RootCAs say both who is trusted"))
		}
	}
	if unix && name == "" && !skip {
		problems = append(problems, errors.New("ServerName: a Unix socket has no name that the certificate could have"))
	}
	return problems
}

// build returns what returns the configuration of a new connection, nil for no TLS.
func (c ClientTLS) build(logger *slog.Logger) (func() *tls.Config, error) {
	if !c.enabled() {
		return nil, nil
	}
	config := baseConfig(c.Config)
	if c.ServerName != "" {
		config.ServerName = c.ServerName
	}
	if c.Files.isZero() {
		return func() *tls.Config { return config }, nil
	}
	certificates, err := LoadCertificates(c.Files, logger)
	if err != nil {
		return nil, err
	}
	if c.Files.Certificate != "" {
		config.GetClientCertificate = certificates.GetClientCertificate
	}
	if c.Files.Authorities == "" {
		return func() *tls.Config { return config }, nil
	}
	return func() *tls.Config {
		latest := config.Clone()
		latest.RootCAs = certificates.Authorities()
		return latest
	}, nil
}

// serverNamed returns config with the host that is called as the name that the server's
// certificate must have, unless it says another one.
func serverNamed(config *tls.Config, network, address string) *tls.Config {
	if config.ServerName != "" || network != "tcp" {
		return config
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return config
	}
	config = config.Clone()
	config.ServerName = host
	return config
}
