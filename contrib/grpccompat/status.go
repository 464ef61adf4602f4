package grpccompat

import (
	"errors"
	"io"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fulmar-rpc/fulmar"
)

// statusError is an error of Fulmar that is a status of grpc-go as well.
type statusError struct {
	status *status.Status
	cause  error
}

// Error returns the text that errors of grpc-go have.
func (e *statusError) Error() string { return e.status.Err().Error() }

// GRPCStatus is what package status looks for.
func (e *statusError) GRPCStatus() *status.Status { return e.status }

// Unwrap returns the error of Fulmar.
func (e *statusError) Unwrap() error { return e.cause }

// Is reports whether target is a status with the same code, text and details, as errors of grpc-go do.
func (e *statusError) Is(target error) bool { return errors.Is(e.status.Err(), target) }

// toStatus returns the error that code for grpc-go understands. io.EOF stays.
func toStatus(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if _, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return err
	}
	var failed *fulmar.Error
	if !errors.As(err, &failed) {
		code := codes.Unknown
		if business := new(fulmar.BusinessError); errors.As(err, &business) {
			code = codes.Internal
		}
		return &statusError{status.New(code, err.Error()), err}
	}
	if details := failed.Details(); details != nil {
		detailed := new(spb.Status)
		if proto.Unmarshal(details, detailed) == nil && detailed.GetCode() != int32(codes.OK) {
			return &statusError{status.FromProto(detailed), err}
		}
	}
	message := failed.Message()
	if failed.Origin() != fulmar.OriginRemote {
		message = failed.Error() // Where and when it failed is of use here, and not said by anybody else.
	}
	return &statusError{status.New(codes.Code(failed.Code()), message), err}
}

// fromStatus returns the error of a handler that was written for grpc-go as one that a
// handler of Fulmar returns.
func fromStatus(err error) error {
	if err == nil {
		return nil
	}
	told, ok := status.FromError(err)
	if !ok {
		if known := new(fulmar.Error); errors.As(err, &known) {
			return err
		}
		if known := new(fulmar.BusinessError); errors.As(err, &known) {
			return err
		}
		told = status.FromContextError(err)
	}
	failed := fulmar.NewError(fulmar.Code(told.Code()), told.Message())
	if len(told.Proto().GetDetails()) == 0 {
		return failed
	}
	details, err := proto.Marshal(told.Proto())
	if err != nil {
		return failed // What cannot be sent is lost, and the status is not.
	}
	return failed.WithDetails(details)
}
