package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// TestConnect_CasesPass: but those of which it is known why they do not.
func TestConnect_CasesPass(t *testing.T) {
	var out bytes.Buffer
	if err := connect(t.Context(), untimedConnectModes(), &out); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestMain(m *testing.M) { testkit.Main(m) }

// TestH2spec_AllCasesPass: nothing is skipped, which cases are that find no answer with a
// body.
func TestH2spec_AllCasesPass(t *testing.T) {
	var out bytes.Buffer
	err := serving(t.Context(), func(ctx context.Context, address string) error { return h2spec(ctx, address, &out) })
	if err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if want := "145 tests, 145 passed, 0 skipped, 0 failed"; !strings.Contains(out.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, out.String())
	}
}
