package main

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// apache makes code for the Go library of Apache Thrift. Apache's own compiler
// is a C++ program that no package registry has; thriftgo prints the same code,
// but for the library as it was before version 0.14, when methods had no
// context. Adding that is all that changes.
func apache(ctx context.Context, definitions []string, output string) error {
	for _, thrift := range definitions {
		if err := tool(ctx, "thriftgo", "-q", "-o", output, "-g", "go:package_prefix="+prefix+"/apache", thrift); err != nil {
			return err
		}
	}
	return filepath.WalkDir(output, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		content, err = format.Source(addContext(content))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return os.WriteFile(path, content, 0o666)
	})
}

// addContext passes a context to everything that takes one since Apache Thrift
// 0.14: methods of protocols, and methods that use a protocol. A client's call
// has also got a second result since then, and a processor's error a type of
// its own.
func addContext(source []byte) []byte {
	for _, rule := range []struct{ pattern, replacement string }{
		{`\((iprot|oprot) thrift\.TProtocol\)`, `(ctx context.Context, $1 thrift.TProtocol)`},
		{`\((iprot|oprot)\)`, `(ctx, $1)`},
		{`\b(iprot|oprot)\.(Read|Write|Skip)(\w*)\(`, `$1.$2$3(ctx, `},
		{
			`func \(p (\*\w+)\) Process\(ctx context\.Context, (seqId int32, )?(.*)\) \(success bool, err thrift\.TException\) {`,
			"func (p $1) Process(ctx context.Context, $2$3) (bool, thrift.TException) {\n" +
				"success, err := p.process(ctx, $2)\nreturn success, thrift.WrapTException(err)\n}\n\n" +
				"func (p $1) process(ctx context.Context, $2$3) (success bool, err error) {",
		},
		{`p\.process\(ctx, (seqId)?(?: int32, )?\)`, `p.process(ctx, $1, iprot, oprot)`},
		{`p\.process\(ctx, , `, `p.process(ctx, `},
		{`\bif err = (p\.Client_\(\)\.Call\()`, `if _, err = $1`},
	} {
		source = regexp.MustCompile(rule.pattern).ReplaceAll(source, []byte(rule.replacement))
	}
	// Files without a service do not have it.
	if !bytes.Contains(source, []byte(`"context"`)) {
		source = bytes.Replace(source, []byte("import ("), []byte("import (\n\t\"context\""), 1)
	}
	return source
}
