package fulmar

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
)

// CertificateFiles names files in PEM form. They are read again when they have changed,
// so a new certificate needs no restart.
type CertificateFiles struct {
	// Certificate is a file with a certificate and those that lead from it to an
	// authority, Key one with its key. Both or neither.
	Certificate string
	Key         string
	// Authorities is a file with the certificates of those who sign the peers'. Default
	// for clients: those that the system trusts.
	Authorities string
	// CheckInterval is how often the files are looked at, at most, when connections
	// begin. Default 10 s (CertificateCheckInterval). Negative: never again.
	CheckInterval time.Duration
}

func (f CertificateFiles) isZero() bool { return f == CertificateFiles{} }

// Certificates are what CertificateFiles holds now. While files that have changed
// cannot be used, it stays what it was, and a line of the log says so. Safe for
// concurrent use.
type Certificates struct {
	files    CertificateFiles
	interval time.Duration
	log      *peerlog.Log

	mu sync.Mutex
	// checked is when the files were looked at last, seen how they were then.
	checked time.Time
	seen    [3]fileState
	current *certificateSet
	// reading: somebody looks at the files, and only he sets what there is.
	reading bool
}

// certificateSet is what was in the files at one time.
type certificateSet struct {
	certificate *tls.Certificate
	authorities *x509.CertPool
}

// fileState is what shows that a file has changed.
type fileState struct {
	changed time.Time
	size    int64
}

// LoadCertificates reads files. The logger is told when they were read again, or could
// not be; nil is slog.Default().
func LoadCertificates(files CertificateFiles, logger *slog.Logger) (*Certificates, error) {
	if logger == nil {
		logger = slog.Default()
	}
	c := &Certificates{
		files:    files,
		interval: limits.Or(files.CheckInterval, limits.CertificateCheckInterval, -1),
		log:      peerlog.New(logger),
		checked:  time.Now(),
	}
	// Before they are read: what changes meanwhile is read once more.
	c.seen = files.state()
	var err error
	c.current, err = files.read()
	return c, err
}

func (f CertificateFiles) state() (states [3]fileState) {
	for i, name := range []string{f.Certificate, f.Key, f.Authorities} {
		if name == "" {
			continue
		}
		if info, err := os.Stat(name); err == nil {
			states[i] = fileState{info.ModTime(), info.Size()}
		}
	}
	return states
}

func (f CertificateFiles) read() (*certificateSet, error) {
	set := &certificateSet{}
	var problems []error
	switch {
	case f.Certificate != "" && f.Key != "":
		pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
		set.certificate = &pair
		if err != nil {
			problems = append(problems, fmt.Errorf("certificate %s, key %s: %w", f.Certificate, f.Key, withoutPath(err)))
		}
	case f.Certificate != "" || f.Key != "":
		problems = append(problems, errors.New("a certificate and a key are only of use together"))
	}
	if f.Authorities != "" {
		text, err := os.ReadFile(f.Authorities)
		set.authorities = x509.NewCertPool()
		if err == nil && !set.authorities.AppendCertsFromPEM(text) {
			err = errors.New("no certificate is in it")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("authorities %s: %w", f.Authorities, withoutPath(err)))
		}
	}
	return set, errors.Join(problems...)
}

// withoutPath leaves out what stands in front of it.
func withoutPath(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// now returns what is in the files. Whoever finds that they are to be looked at does so;
// others take what there is meanwhile, since files can be slow and handshakes wait for
// them.
func (c *Certificates) now() *certificateSet {
	c.mu.Lock()
	now := time.Now()
	current, seen := c.current, c.seen
	if c.interval < 0 || c.reading || now.Sub(c.checked) < c.interval {
		c.mu.Unlock()
		return current
	}
	c.checked, c.reading = now, true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.current, c.seen, c.reading = current, seen, false
	}()
	if state := c.files.state(); state != seen {
		fresh, err := c.files.read()
		if err == nil {
			current, seen = fresh, state
			c.log.Info("certificates were read again", "certificate", c.files.Certificate, "authorities", c.files.Authorities)
		} else {
			// Looked at again next time: one of several files may not be there yet.
			c.log.Warn("certificates cannot be read again, the old ones stay", "reason", err.Error())
		}
	}
	return current
}

// GetCertificate is for tls.Config.GetCertificate.
func (c *Certificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := c.now().certificate; certificate != nil {
		return certificate, nil
	}
	return nil, errors.New("no certificate was loaded")
}

// GetClientCertificate is for tls.Config.GetClientCertificate. Without a certificate it
// returns an empty one, which says that to the server.
func (c *Certificates) GetClientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if certificate := c.now().certificate; certificate != nil {
		return certificate, nil
	}
	return &tls.Certificate{}, nil
}

// Authorities returns who signs the peers' certificates, nil if no file says so. It must
// not be changed.
func (c *Certificates) Authorities() *x509.CertPool { return c.now().authorities }
