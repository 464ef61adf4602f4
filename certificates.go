package fulmar

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
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
	// checked is when the files were looked at last, seen what was in them then, whether
	// it could be used or not.
	checked time.Time
	seen    fileSums
	current *certificateSet
	// reading: somebody looks at the files, and only he sets what there is.
	reading bool
}

// certificateSet is what was in the files at one time.
type certificateSet struct {
	certificate *tls.Certificate
	authorities *x509.CertPool
}

// fileTexts are what Certificate, Key and Authorities hold.
type fileTexts [3]fileText

type fileText struct {
	text []byte
	err  error
}

// fileSums tell whether files have changed. Times and sizes do not: a file may be
// replaced by one as long within a tick of the clock, or by an older one. Reading and
// summing up three files of 4 KB takes 50 us, every CheckInterval.
type fileSums [3][sha256.Size]byte

func (f *fileTexts) sums() (sums fileSums) {
	for i := range f {
		if f[i].err != nil {
			sums[i] = sha256.Sum256([]byte("error: " + f[i].err.Error()))
		} else {
			sums[i] = sha256.Sum256(f[i].text)
		}
	}
	return sums
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
	var err error
	c.current, c.seen, err = files.read()
	return c, err
}

// read returns what the files say, and what tells whether they have changed.
func (f CertificateFiles) read() (*certificateSet, fileSums, error) {
	texts := f.texts()
	return f.understand(&texts, texts.sums())
}

// understand returns what the texts say. A certificate and a key that do not fit are
// read once more: whoever replaces them between the two reads, such as Kubernetes by one
// symbolic link, leaves half of each.
func (f CertificateFiles) understand(texts *fileTexts, sums fileSums) (*certificateSet, fileSums, error) {
	set, err := f.parse(texts)
	if err == nil {
		return set, sums, nil
	}
	again := f.texts()
	if now := again.sums(); now != sums {
		sums = now
		set, err = f.parse(&again)
	}
	return set, sums, err
}

// texts reads the files, one that has several parts only once: between two reads it may
// be replaced, and a certificate and its key would not fit.
func (f CertificateFiles) texts() (texts fileTexts) {
	names := [3]string{f.Certificate, f.Key, f.Authorities}
	for i, name := range names {
		if name == "" {
			continue
		}
		if first := slices.Index(names[:], name); first < i {
			texts[i] = texts[first]
			continue
		}
		text, err := os.ReadFile(name)
		if err == nil {
			err = wholePEM(text)
		}
		texts[i] = fileText{text, withoutPath(err)}
	}
	return texts
}

// wholePEM returns an error for a file of which only a part has been written yet. What is
// cut off would be left out in silence, such as all authorities but the first.
func wholePEM(text []byte) error {
	block, rest := pem.Decode(text)
	for block != nil {
		block, rest = pem.Decode(rest)
	}
	if bytes.Contains(rest, []byte("-----BEGIN ")) {
		return errors.New("it ends in the middle of a block")
	}
	return nil
}

// parse returns what the texts say.
func (f CertificateFiles) parse(texts *fileTexts) (*certificateSet, error) {
	set := &certificateSet{}
	var problems []error
	certificate, key, authorities := texts[0], texts[1], texts[2]
	switch {
	case f.Certificate != "" && f.Key != "":
		err := cmp.Or(certificate.err, key.err)
		if err == nil {
			var pair tls.Certificate
			pair, err = tls.X509KeyPair(certificate.text, key.text)
			set.certificate = &pair
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("certificate %s, key %s: %w", f.Certificate, f.Key, err))
		}
	case f.Certificate != "" || f.Key != "":
		problems = append(problems, errors.New("a certificate and a key are only of use together"))
	}
	if f.Authorities != "" {
		err := authorities.err
		set.authorities = x509.NewCertPool()
		if err == nil && !set.authorities.AppendCertsFromPEM(authorities.text) {
			err = errors.New("no certificate is in it")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("authorities %s: %w", f.Authorities, err))
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
	texts := c.files.texts()
	if sums := texts.sums(); sums != seen {
		fresh, sums, err := c.files.understand(&texts, sums)
		seen = sums
		if err == nil {
			current = fresh
			c.log.Info("certificates were read again", "certificate", c.files.Certificate, "authorities", c.files.Authorities)
		} else {
			// Said once, until they change again: one of several may not be there yet.
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
