package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const generated = `package p

import (
	"context"

	"example.com/thrift"
)

type Args struct{ Value int32 }

func (p *Args) Read(iprot thrift.TProtocol) (err error) {
	if _, err = iprot.ReadStructBegin(); err != nil {
		return err
	}
	return p.ReadField1(iprot)
}

type Client struct{ c thrift.TClient }

func NewClient(t thrift.TTransport, iprot, oprot int) *Client {
	return &Client{thrift.NewTStandardClient(iprot, oprot)}
}

func (p *Client) Flip(ctx context.Context, value int32) (err error) {
	var _args Args
	if err = p.c.Call(ctx, "flip", &_args, nil); err != nil {
		return
	}
	return nil
}

type flipProcessor struct{}

func (p *flipProcessor) Process(ctx context.Context, seqId int32, iprot, oprot thrift.TProtocol) (success bool, err thrift.TException) {
	oprot.WriteMessageBegin("flip", thrift.REPLY, seqId)
	oprot.Flush(ctx)
	return true, err
}

type Processor struct{}

func (p *Processor) Process(ctx context.Context, iprot, oprot thrift.TProtocol) (success bool, err thrift.TException) {
	return false, nil
}
`

func TestRewrite_FitsTheLibraryOfToday(t *testing.T) {
	rewritten, err := rewrite([]byte(generated))
	if err != nil {
		t.Fatal(err)
	}
	text := string(rewritten)
	for _, want := range []string{
		"func (p *Args) Read(ctx context.Context, iprot thrift.TProtocol) (err error) {",
		"iprot.ReadStructBegin(ctx)",
		"p.ReadField1(ctx, iprot)",
		"thrift.NewTStandardClient(iprot, oprot)",
		`_, err = p.c.Call(ctx, "flip", &_args, nil)`,
		"func (p *flipProcessor) process(ctx context.Context, seqId int32, iprot, oprot thrift.TProtocol) (success bool, err error) {",
		`oprot.WriteMessageBegin(ctx, "flip", thrift.REPLY, seqId)`,
		"oprot.Flush(ctx)",
		"success, err := p.process(ctx, seqId, iprot, oprot)",
		"success, err := p.process(ctx, iprot, oprot)",
		"return success, thrift.WrapTException(err)",
		`"flip": Args{},`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if _, err := rewrite([]byte("package")); err == nil {
		t.Error("what is no Go file is accepted")
	}
}

func TestRun_CopiesWithAnotherImportPath(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from.go"), filepath.Join(t.TempDir(), "gen", "to.go")
	if err := os.WriteFile(from, []byte("package p\n\nimport _ \"example.com/a/base\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"copy", from, to, "example.com/a/", "example.com/b/"}); err != nil {
		t.Fatal(err)
	}
	copied, err := os.ReadFile(to)
	if err != nil || !strings.HasPrefix(string(copied), "// Code generated ") || !strings.Contains(string(copied), `import _ "example.com/b/base"`) {
		t.Errorf("%v\n%s", err, copied)
	}
	for _, wrong := range [][]string{nil, {"copy", from}, {"context"}, {"context", t.TempDir()}, {"copy", from, to, "example.com/c/", "example.com/b/"}} {
		if run(wrong) == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
