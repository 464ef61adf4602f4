package policy

import (
	"errors"
	"fmt"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// problems are what is wrong with a document, each with its place.
type problems struct {
	list []error
	// more were found than are listed.
	more int
}

func (p *problems) add(path, format string, args ...any) {
	if len(p.list) >= limits.PolicyErrors {
		p.more++
		return
	}
	if path == "" {
		path = "document"
	}
	p.list = append(p.list, fmt.Errorf("%s: %w", path, fmt.Errorf(format, args...)))
}

// unknown reports a name that is none of those that there are. What was meant is not looked
// for when nobody would read it: a document can have a hundred thousand of them.
func (p *problems) unknown(path, what, name string, known []string) {
	if len(p.list) >= limits.PolicyErrors {
		p.more++
		return
	}
	p.add(path, "%s %s%s", what, quoted(name), meant(name, known))
}

// err returns all of them, nil if there are none.
func (p *problems) err() error {
	if p.more == 0 {
		return errors.Join(p.list...)
	}
	return errors.Join(append(p.list[:len(p.list):len(p.list)], fmt.Errorf("document: %d more problems (%d are listed)", p.more, len(p.list)))...)
}

// below returns the path of a field of what is at a path.
func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// entry returns the path of an entry of a map.
func entry(path, name string) string { return path + "[" + quoted(name) + "]" }
