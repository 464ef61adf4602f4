package main

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestRun_SaysWhoIsServed(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "testdata/output.txt", out.Bytes())
}
