package rpc

import (
	"math/rand/v2"
	"strconv"
)

// Message is a request and a reply of the method echo.
type Message struct {
	Action, Msg string
}

// Part, Group and Complex mirror the structs of echo.thrift, without any
// contestant's way of writing them in Go. Everything that is optional is set.
type Part struct {
	Number int64
	Value  string
}

// Group is a Part with parts.
type Group struct {
	Part
	Parts []Part
}

// Complex is a request and a reply of the method complex.
type Complex struct {
	Action, Msg string
	ByName      map[string]Part
	Parts       []Part
	Groups      []Group
	Flag        Group
}

// variants is how many different requests a caller makes in turn. Two are
// enough to tell a reply from that of the caller's call before; more would
// only fill the caches with data that a real caller does not have.
const variants = 2

// The sizes of Complex, which come to about 11 KB on the wire.
const (
	complexText   = 1 << 10
	complexNames  = 5
	complexParts  = 100
	partText      = 10
	complexGroups = 1
	groupParts    = 2
)

// newMessages returns the requests of one caller. No two callers have one in
// common, so a reply that went to the wrong caller is noticed.
func newMessages(caller, length int) []Message {
	messages := make([]Message, variants)
	for i := range messages {
		random := newRandom(caller, i)
		messages[i] = Message{Action: action(caller, i), Msg: random.text(length)}
	}
	return messages
}

// NewComplexes returns the requests of one caller of the method complex.
func NewComplexes(caller int) []*Complex {
	complexes := make([]*Complex, variants)
	for i := range complexes {
		random := newRandom(caller, i)
		c := &Complex{
			Action: action(caller, i),
			Msg:    random.text(complexText),
			ByName: make(map[string]Part, complexNames),
			Parts:  random.parts(complexParts, partText),
			Flag:   random.group(),
		}
		for n := range complexNames {
			c.ByName["name"+strconv.Itoa(n)] = random.part(complexText)
		}
		for range complexGroups {
			c.Groups = append(c.Groups, random.group())
		}
		complexes[i] = c
	}
	return complexes
}

func action(caller, variant int) string {
	return "echo-" + strconv.Itoa(caller) + "-" + strconv.Itoa(variant)
}

// textSource makes reproducible text.
type textSource struct{ random *rand.Rand }

func newRandom(caller, variant int) textSource {
	return textSource{rand.New(rand.NewPCG(uint64(caller), uint64(variant)))}
}

// text returns printable ASCII, which is as long in every encoding.
func (s textSource) text(length int) string {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte('0' + s.random.IntN('z'-'0'+1))
	}
	return string(b)
}

func (s textSource) part(length int) Part {
	return Part{Number: s.random.Int64(), Value: s.text(length)}
}

func (s textSource) parts(n, length int) []Part {
	parts := make([]Part, n)
	for i := range parts {
		parts[i] = s.part(length)
	}
	return parts
}

func (s textSource) group() Group {
	return Group{Part: s.part(complexText), Parts: s.parts(groupParts, partText)}
}
