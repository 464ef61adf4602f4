package eventloop_test

import "github.com/fulmar-rpc/fulmar/eventloop"

// inlineIfAuto makes DispatchAuto run handlers inline, until it decides otherwise.
func inlineIfAuto(s *server, config eventloop.Config) {
	if config.Dispatch == eventloop.DispatchAuto {
		s.ForceInline()
	}
}
