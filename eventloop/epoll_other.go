//go:build !linux

package eventloop

// loopState is empty where there is no epoll.
type loopState struct{}

// epoll is the constructor of EngineEpoll, which there is none of.
func epoll() func(*Listener) engine { return nil }

func (*Conn) waits() {}

func (*Conn) isPolling() bool { return false }
