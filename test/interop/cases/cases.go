// Package cases reads cases.json and courier.json and runs what is in them
// through a generated client, whichever library generated it. The Go peers and
// the tests of Fulmar share it; python/peers/cases.py is the same in Python.
package cases

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/test/interop/notation"
)

// File is a file of cases; python/peers/cases.py describes the members that
// both languages know.
type File struct {
	Cases []Case `json:"cases"`
	Raw   []Raw  `json:"raw"`
}

// Case is one call, or several in order.
type Case struct {
	Step
	Name string `json:"name"`
	// Without names the peers that cannot take part.
	Without []string `json:"without"`
	Steps   []Step   `json:"steps"`
}

// All returns the steps of the case, which may be one only.
func (c Case) All() []Step {
	if len(c.Steps) > 0 {
		return c.Steps
	}
	return []Step{c.Step}
}

// TakesPart reports whether the case is meant for all of the named peers.
func (c Case) TakesPart(peers ...string) bool { return takesPart(c.Without, peers) }

func takesPart(without, peers []string) bool {
	return !slices.ContainsFunc(peers, func(name string) bool { return slices.Contains(without, name) })
}

// Step is one call and what has to come back.
type Step struct {
	Method    string         `json:"method"`
	Arguments map[string]any `json:"arguments"`
	// Persistent and Transient are the metadata of the request.
	Persistent map[string]string `json:"persistent"`
	Transient  map[string]string `json:"transient"`

	Result any `json:"result"`
	// Throws is a declared exception: its name, with its members.
	Throws map[string]any `json:"throws"`
	// Fails is the type of an application exception.
	Fails int32 `json:"fails"`
	// Business is a business error.
	Business *Business `json:"business"`
	// Backward is what the metadata of the reply must hold, among others.
	Backward map[string]string `json:"backward"`

	// Closes names the servers that close the connection instead.
	Closes []string `json:"closes"`
	// Eventually allows the result to take a moment.
	Eventually bool `json:"eventually"`
	// Background calls run beside the steps that follow.
	Background bool `json:"background"`
}

// Business is a business error as both sides see it.
type Business struct {
	Code    int32             `json:"code"`
	Message string            `json:"message"`
	Extra   map[string]string `json:"extra"`
}

// Raw is a message that no client would send.
type Raw struct {
	Name    string   `json:"name"`
	Without []string `json:"without"`
	Raw     struct {
		Method string `json:"method"`
		Type   *byte  `json:"type"`
		SeqID  *int32 `json:"seqid"`
		Body   any    `json:"body"`
	} `json:"raw"`
	Body      string `json:"body"`
	Exception int32  `json:"exception"`
	Nothing   bool   `json:"nothing"`
}

// TakesPart reports whether the case is meant for all of the named peers.
func (c Raw) TakesPart(peers ...string) bool { return takesPart(c.Without, peers) }

// RequestBody returns the body of the request in hex: it is a string, or a list
// of pairs of a string and how often it occurs.
func (c Raw) RequestBody() string {
	pairs, ok := c.Raw.Body.([]any)
	if !ok {
		return c.Raw.Body.(string)
	}
	var body strings.Builder
	for _, pair := range pairs {
		part := notation.Expand(map[string]any{"$repeat": pair}, "")
		body.WriteString(part.(string))
	}
	return body.String()
}

// Load reads the file at path.
func Load(path string) (File, error) {
	content, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer content.Close()
	decoder := json.NewDecoder(content)
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	var file File
	if err := decoder.Decode(&file); err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}
