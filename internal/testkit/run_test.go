package testkit

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// These tests look inside: what Main does ends with os.Exit.

func TestRun_FailsOnALeakOnlyWhenTheTestsPassed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors can only be listed on Linux")
	}
	var file *os.File
	folder := t.TempDir()
	// The tests of this package run in such a folder themselves.
	t.Setenv(tempOwned, "")
	leave := func() int {
		if err := os.WriteFile(os.TempDir()+"/forgotten", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return 0
	}
	leak := func(code int) func() int {
		return func() int {
			var err error
			if file, err = os.Create(folder + "/left-open"); err != nil {
				t.Fatal(err)
			}
			return code
		}
	}
	for _, test := range []struct {
		name         string
		tests        func() int
		code         int
		outputSubstr string
	}{
		{"clean", func() int { return 0 }, 0, ""},
		{"passed with a leak", leak(0), 1, "left-open"},
		{"failed with a leak", leak(3), 3, ""},
		{"temporary file", leave, 1, "temporary files: 1 left: forgotten"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var output strings.Builder
			code := run(test.tests, &output, time.Millisecond)
			if file != nil {
				file.Close()
			}
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if got := output.String(); !strings.Contains(got, test.outputSubstr) || (test.outputSubstr == "") != (got == "") {
				t.Errorf("output %q, want %q in it", got, test.outputSubstr)
			}
		})
	}
}
