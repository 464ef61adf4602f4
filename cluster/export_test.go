package cluster

import (
	"context"
	"io"
	"net"
	"time"
)

// ParseAnnouncement reads the file of an instance, for its fuzz target.
func ParseAnnouncement(data []byte) (Instance, error) {
	a, err := parseAnnouncement(data)
	return a.instance(), err
}

// FileName returns the name of a file for any text.
func FileName(text string) string { return fileName(text) }

// InstancesOfSRV returns what the records of an answer of DNS mean.
func InstancesOfSRV(records []*net.SRV) []Instance { return instancesOfSRV(records) }

// DialServers makes a DNS ask servers that dial reaches.
func (d *DNS) DialServers(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	d.dial = dial
}

// LookUp asks once, and returns how long to stay with what came.
func (d *DNS) LookUp(ctx context.Context) (list []Instance, pause time.Duration, err error) {
	return d.lookUp(ctx)
}

// TimesOfStream returns how long answers hold that are read from a connection with pieces
// of some bytes each, and what was read.
func TimesOfStream(conn net.Conn, piece int) (holds time.Duration, known bool, read []byte) {
	times := new(answerTimes)
	stream := &streamAnswers{Conn: conn, times: times}
	buffer := make([]byte, piece)
	for {
		n, err := stream.Read(buffer)
		read = append(read, buffer[:n]...)
		if err == io.EOF {
			holds, known = times.holds()
			return holds, known, read
		}
	}
}

// View returns what stands for the view of a Balancer, and how many members it has.
func (b *Balancer) View() (view any, members int) {
	v := b.view.Load()
	return v, len(v.near.members) + len(v.far.members)
}
