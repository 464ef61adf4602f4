package syntax

import (
	"fmt"
	"strconv"

	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Problem is something to tell the author of a file.
type Problem struct {
	Place ast.Place
	// Warning says that the file can be used all the same.
	Warning bool
	Message string
}

// problems collects what is wrong with one file.
type problems struct {
	list             []Problem
	errors, warnings int
}

func (p *problems) errorf(place ast.Place, format string, arguments ...any) {
	p.errors++
	if !p.full() {
		p.list = append(p.list, Problem{Place: place, Message: fmt.Sprintf(format, arguments...)})
	}
}

func (p *problems) warningf(place ast.Place, format string, arguments ...any) {
	p.warnings++
	if p.warnings <= limits.IDLErrors {
		p.list = append(p.list, Problem{Place: place, Warning: true, Message: fmt.Sprintf(format, arguments...)})
	}
}

// full says that reading on is pointless. One error more than the limit is
// kept, so that the caller can see that there were too many.
func (p *problems) full() bool { return p.errors > limits.IDLErrors+1 }

// clip shortens what the file says to what fits a message.
func clip(s string) string {
	const longest = 40
	if len(s) <= longest {
		return s
	}
	return s[:longest] + "..."
}

func quote(s string) string { return strconv.Quote(clip(s)) }
