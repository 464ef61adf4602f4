package eventloop

import (
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkPoll_Trigger is what the kernel takes for a message that is sent, reported and read,
// on 100 connections in turn, where it reports once and where it looks again.
func BenchmarkPoll_Trigger(b *testing.B) {
	b.Run("edge", func(b *testing.B) { benchmarkTrigger(b, unix.EPOLLET) })
	b.Run("level", func(b *testing.B) { benchmarkTrigger(b, 0) })
}

func benchmarkTrigger(b *testing.B, trigger uint32) {
	l, engine := unserved(b, Config{Pollers: 1})
	p, err := newPoller(engine)
	if err != nil {
		b.Fatal(err)
	}
	defer p.free()
	const connections = 100
	var peers [connections]*socket
	fds := make(map[uint32]int, connections)
	for i := range peers {
		s, peer := socketPair(b, l)
		peers[i], fds[s.token.slot] = peer, s.fd
		event := unix.EpollEvent{Events: readEvents | trigger, Fd: int32(s.token.slot), Pad: int32(s.token.generation)}
		if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, s.fd, &event); err != nil {
			b.Fatal(err)
		}
	}
	message, room := make([]byte, 128), make([]byte, 256)
	var events [batchEvents]unix.EpollEvent
	for b.Loop() {
		for _, peer := range peers {
			if _, err := unix.Write(peer.fd, message); err != nil {
				b.Fatal(err)
			}
		}
		for read := 0; read < connections; {
			n, err := p.poll(events[:])
			if err != nil {
				b.Fatal(err)
			}
			for _, event := range events[:n] {
				if n, err := unix.Read(fds[uint32(event.Fd)], room); err != nil || n != len(message) {
					b.Fatal(n, err)
				}
				read++
			}
		}
		if n, err := p.poll(events[:]); n != 0 || err != nil { // before the peers have answered
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/connections, "ns/event")
}
