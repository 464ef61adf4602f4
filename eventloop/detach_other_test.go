//go:build !linux

package eventloop_test

import "github.com/fulmar-rpc/fulmar/eventloop"

// inlineIfAuto: nothing runs inline here.
func inlineIfAuto(*server, eventloop.Config) {}
