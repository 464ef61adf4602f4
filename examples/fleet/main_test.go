package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		return
	}
	testkit.Main(m)
}

func TestRun_LosesNoCall(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v, behind\n%s", err, &out)
	}
	if n := strings.Count(out.String(), "  ok  "); n != 6 {
		t.Errorf("%d scenes:\n%s", n, &out)
	}
	if !strings.Contains(out.String(), "again after") {
		t.Errorf("no call was tried again:\n%s", &out)
	}
}
