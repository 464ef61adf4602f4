//go:build !invariants && !race

package linkbuf

// Outstanding returns how many pooled slices of the whole process are in use.
// Only builds with the invariants tag or the race detector count; in all others
// it is 0.
func Outstanding() int64 { return 0 }

// poolChecks does nothing in this build; see linkbuf_invariants.go.
type poolChecks struct{}

func (*poolChecks) got([]byte)       {}
func (*poolChecks) reused([]byte)    {}
func (*poolChecks) put([]byte)       {}
func (*poolChecks) forgotten([]byte) {}

// contentCheck does nothing in this build.
type contentCheck struct{}

func newContentCheck([]byte) contentCheck { return contentCheck{} }
func (contentCheck) verify([]byte)        {}

func spoil([]byte) {}
