package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/fulmar-rpc/fulmar"
	conformance "github.com/fulmar-rpc/fulmar/test/conformance/gen/connectrpc/conformance/v1"
)

// wait waits for some milliseconds, and fails if the call ends before.
func wait(ctx context.Context, milliseconds uint32) error {
	timer := time.NewTimer(time.Duration(milliseconds) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// pairs yields headers as metadata. Names are the same in upper and lower case, and in
// HTTP/2 they are in lower case.
func pairs(headers []*conformance.Header) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, header := range headers {
			if !yield(strings.ToLower(header.GetName()), header.GetValue()) {
				return
			}
		}
	}
}

// headersOf returns metadata as headers.
func headersOf(pairs iter.Seq2[string, string]) (headers []*conformance.Header) {
	at := map[string]*conformance.Header{}
	for key, value := range pairs {
		header := at[key]
		if header == nil {
			header = &conformance.Header{Name: key}
			at[key], headers = header, append(headers, header)
		}
		header.Value = append(header.Value, value)
	}
	return headers
}

// toError returns the error that a handler is asked for, with the details that come on top.
func toError(definition *conformance.Error, more ...proto.Message) error {
	status := &spb.Status{Code: int32(definition.GetCode()), Message: definition.GetMessage(), Details: definition.GetDetails()}
	for _, message := range more {
		detail, err := anypb.New(message)
		if err != nil {
			return err
		}
		status.Details = append(status.Details, detail)
	}
	text, err := proto.Marshal(status)
	if err != nil {
		return err
	}
	return fulmar.NewError(fulmar.Code(status.Code), status.Message).WithDetails(text)
}

// fromError returns what a call failed with.
func fromError(err error) *conformance.Error {
	message := err.Error()
	var failed *fulmar.Error
	var details []*anypb.Any
	if errors.As(err, &failed) {
		message = failed.Message()
		var status spb.Status
		if err := proto.Unmarshal(failed.Details(), &status); err != nil {
			message = fmt.Sprintf("the details of %q are no google.rpc.Status: %v", message, err)
		}
		details = status.Details
	}
	return &conformance.Error{Code: conformance.Code(fulmar.CodeOf(err)), Message: &message, Details: details}
}
