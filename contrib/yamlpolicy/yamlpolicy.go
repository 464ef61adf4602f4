// Package yamlpolicy reads policies that are written in YAML: a text, or a file that is read
// again when it changes.
//
//	client, err := fulmar.NewClient(fulmar.ClientConfig{
//		Target:       "dns:///orders.internal:8888",
//		PolicySource: yamlpolicy.File("policy.yaml"),
//	})
//
// What a document may have is that of package policy; the module is one of its own because
// the core does without a parser of YAML.
package yamlpolicy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/fulmar-rpc/fulmar/policy"
)

// The bounds of a file: as long as a document in JSON may be, and looked at as often.
const (
	// DocumentBytes is how long a text may be.
	DocumentBytes = 1 << 20
	// FileInterval is how often a file is looked at.
	FileInterval = time.Second
)

// Parse reads a document in YAML, of DocumentBytes at most. It returns all that is wrong
// with it, as policy.Decode does; of what is no YAML, or has a field twice, what the parser
// says first.
func Parse(text []byte) (policy.Document, error) {
	tree, err := parse(text)
	if err != nil {
		return policy.Document{}, err
	}
	return policy.Decode(tree)
}

func parse(text []byte) (map[string]any, error) {
	if len(text) > DocumentBytes {
		return nil, fmt.Errorf("document: %d bytes (limit %d)", len(text), DocumentBytes)
	}
	var tree map[string]any
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&tree); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("document: %w", err)
	}
	var more any
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("document: more than one")
	}
	return tree, nil
}

// File returns a source of policies for ClientConfig.PolicySource and
// ServerConfig.PolicySource: it delivers the file, and again whenever that has changed,
// which it looks for once in FileInterval. The beginning of YAML is YAML, so a change counts
// when it is still there at the next look: who writes slowly should rename a file that is
// complete. A file that cannot be read, is empty or no YAML is an error, after which it is
// called again. What is YAML, but no policy, is refused by whoever
// gets it. Each call of the function watches by itself.
func File(name string) func(ctx context.Context, deliver func(document []byte, version string)) error {
	return func(ctx context.Context, deliver func(document []byte, version string)) error {
		ticker := time.NewTicker(FileInterval)
		defer ticker.Stop()
		var last, seen []byte
		for {
			text, err := read(name)
			if err != nil {
				return fmt.Errorf("policy file %s: %w", name, err)
			}
			if last == nil || !bytes.Equal(text, last) && bytes.Equal(text, seen) {
				document, err := toJSON(text)
				if err != nil {
					return fmt.Errorf("policy file %s: %w", name, err)
				}
				last = text
				deliver(document, "of "+name)
			}
			seen = text
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// toJSON returns what a file says in JSON.
func toJSON(text []byte) ([]byte, error) {
	tree, err := parse(text)
	switch {
	case err != nil:
		return nil, err
	case tree == nil:
		return nil, errors.New("it is empty")
	}
	return json.Marshal(tree)
}

// read reads no more of a file than a document may have, and one byte.
func read(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, DocumentBytes+1))
}
