package fulmar

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
)

// Identity is who a caller is, as its certificate says. Somebody whom the configuration
// trusts has signed that, and it was valid when the connection began. It is a value
// that stays valid for ever and never changes.
type Identity struct {
	leaf *x509.Certificate
	uris []string
}

// CommonName returns the name of the subject, as older certificates have it.
func (i Identity) CommonName() string {
	if i.leaf == nil {
		return ""
	}
	return i.leaf.Subject.CommonName
}

// DNSNames returns the names of hosts, which may have a "*" for their first part.
func (i Identity) DNSNames() []string {
	if i.leaf == nil {
		return nil
	}
	return slices.Clone(i.leaf.DNSNames)
}

// URIs returns the names of other kinds, such as that of SPIFFE.
func (i Identity) URIs() []string { return slices.Clone(i.uris) }

// Certificate returns the certificate, nil for the zero Identity. All calls share it, and
// nobody may change it.
func (i Identity) Certificate() *x509.Certificate { return i.leaf }

// name returns what a limit knows a caller by.
func (i *Identity) name() string {
	switch {
	case len(i.uris) > 0:
		return i.uris[0]
	case i.leaf == nil:
		return ""
	case i.leaf.Subject.CommonName != "" || len(i.leaf.DNSNames) == 0:
		return i.leaf.Subject.CommonName
	}
	return i.leaf.DNSNames[0]
}

// identityOf returns who the peer of a connection is, nil if nobody has verified that.
func identityOf(state *tls.ConnectionState) any {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.PeerCertificates) == 0 {
		return nil
	}
	identity := &Identity{leaf: state.PeerCertificates[0]}
	for _, uri := range identity.leaf.URIs {
		identity.uris = append(identity.uris, uri.String())
	}
	return identity
}

// Identity returns who the caller is. ok is false if it has shown no certificate, or the
// server asks for none: then only its address is known. What a caller says about itself
// elsewhere, as CallerService does, proves nothing.
func (c Call) Identity() (identity Identity, ok bool) {
	found, _ := c.between().Identity.(*Identity)
	if found == nil {
		return Identity{}, false
	}
	return *found, true
}
