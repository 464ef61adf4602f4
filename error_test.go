package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

func TestCodeOf_LooksThroughTheChain(t *testing.T) {
	cases := []struct {
		err  error
		want fulmar.Code
	}{
		{nil, 0},
		{io.EOF, fulmar.Unknown},
		{context.Canceled, fulmar.Canceled},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), fulmar.DeadlineExceeded},
		{fulmar.NewError(fulmar.NotFound, "x"), fulmar.NotFound},
		{fmt.Errorf("x: %w", fulmar.NewError(fulmar.Aborted, "x")), fulmar.Aborted},
	}
	for _, test := range cases {
		if got := fulmar.CodeOf(test.err); got != test.want {
			t.Errorf("CodeOf(%v) = %v, want %v", test.err, got, test.want)
		}
	}
}

func TestErrorf_KeepsTheCause(t *testing.T) {
	err := fulmar.Errorf(fulmar.DataLoss, "reading %s: %w", "file", io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Code() != fulmar.DataLoss || err.Error() != "data loss: reading file: unexpected EOF" {
		t.Errorf("Errorf = %v", err)
	}
}

func TestCode_HasTheNumbersOfGRPC(t *testing.T) {
	want := map[fulmar.Code]string{
		1: "canceled", 2: "unknown", 3: "invalid argument", 4: "deadline exceeded", 5: "not found", 6: "already exists",
		7: "permission denied", 8: "resource exhausted", 9: "failed precondition", 10: "aborted", 11: "out of range",
		12: "unimplemented", 13: "internal", 14: "unavailable", 15: "data loss", 16: "unauthenticated", 17: "code 17", 0: "ok",
	}
	for code, name := range want {
		if code.String() != name {
			t.Errorf("code %d is %q, want %q", code, code.String(), name)
		}
	}
}

// TestError_SaysThatADeadlineHadPassed: not that there was no result within a
// negative time.
func TestError_SaysThatADeadlineHadPassed(t *testing.T) {
	api := dial(t, fulmar.ClientConfig{Target: "127.0.0.1:1"})
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	e := asError(t, api.Nothing(ctx))
	if e.Code() != fulmar.DeadlineExceeded || e.Executed() != fulmar.ExecutedNo || e.Message() != "the deadline had passed before the call began" {
		t.Errorf("Nothing: %v", e)
	}
}
