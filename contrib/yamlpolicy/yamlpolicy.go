// Package yamlpolicy reads policies that are written in YAML: a text, or a file, once or
// again when it changes.
//
//	document, err := yamlpolicy.Read("policy.yaml")
//	if err != nil {
//		return err
//	}
//	client, err := fulmar.NewClient(fulmar.ClientConfig{
//		Target:       "dns:///orders.internal:8888",
//		Policy:       document.Client,
//		PolicySource: yamlpolicy.File("policy.yaml"),
//	})
//
// Without Read a client or server begins without a policy if the file is wrong, and has it
// only a moment after it was made.
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

	"github.com/fulmar-rpc/fulmar/cluster"
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

// Read reads a file once. It is an error if it cannot be read, is empty or no policy: for
// ClientConfig.Policy and ServerConfig.Policy, so that nothing starts without the policy that
// it should have.
func Read(name string) (policy.Document, error) {
	document, err := lookAt(name).document()
	if err != nil {
		return policy.Document{}, fmt.Errorf("policy file %s: %w", name, err)
	}
	return document, nil
}

// File returns a source of policies for ClientConfig.PolicySource and
// ServerConfig.PolicySource: it delivers the file, and again whenever that has changed,
// which it looks for once in FileInterval. The beginning of YAML is YAML, so a change counts
// when it is still there at the next look: who writes slowly should rename a file that is
// complete. What is wrong, because the file cannot be read, is empty or no policy, it tells
// cluster.Report when it changes, and goes on. It returns when ctx ends. Each call of the
// function watches by itself.
func File(name string) func(ctx context.Context, deliver func(document []byte, version string)) error {
	return func(ctx context.Context, deliver func(document []byte, version string)) error {
		ticker := time.NewTicker(FileInterval)
		defer ticker.Stop()
		told := lookAt(name)
		tell(ctx, name, told, deliver)
		for seen := told; ; {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			now := lookAt(name)
			if now != told && now == seen {
				tell(ctx, name, now, deliver)
				told = now
			}
			seen = now
		}
	}
}

// tell delivers what was seen of a file, or reports what is wrong with it.
func tell(ctx context.Context, name string, seen look, deliver func(document []byte, version string)) {
	document, err := seen.document()
	if err == nil {
		var text []byte
		if text, err = json.Marshal(document); err == nil {
			deliver(text, "of "+name)
			return
		}
	}
	cluster.Report(ctx, fmt.Errorf("policy file %s: %w", name, err))
}

// look is what was seen of a file: its text, or why there is none.
type look struct{ text, trouble string }

func lookAt(name string) look {
	text, err := read(name)
	if err != nil {
		return look{trouble: err.Error()}
	}
	return look{text: string(text)}
}

// document returns what a file says. Nothing is not a policy: somebody is writing.
func (l look) document() (policy.Document, error) {
	if l.trouble != "" {
		return policy.Document{}, errors.New(l.trouble)
	}
	tree, err := parse([]byte(l.text))
	switch {
	case err != nil:
		return policy.Document{}, err
	case tree == nil:
		return policy.Document{}, errors.New("it is empty")
	}
	return policy.Decode(tree)
}

// read reads no more of a file than a document may have, and one byte. Another kind of file
// has no content to be looked at again, and a pipe none until somebody writes to it: nobody
// shall wait for that.
func read(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, withoutName(err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, withoutName(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no regular file (mode %v)", info.Mode())
	}
	text, err := io.ReadAll(io.LimitReader(file, DocumentBytes+1))
	if err != nil {
		return nil, withoutName(err)
	}
	return text, nil
}

// withoutName returns an error about a file whose name is said anyway.
func withoutName(err error) error {
	var named *os.PathError
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}
