package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// waitLimit bounds what a test waits for. None of them measures time.
const waitLimit = 30 * time.Second

// start serves a chat until the test ends, and checks that it stops well. The
// function that it returns stops it earlier.
func start(t *testing.T, config eventloop.Config) (*hall, func()) {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	h, err := newHall("127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.serve(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if len(h.members) != 0 || len(h.rooms) != 0 {
			t.Errorf("left behind: %d members, %d rooms", len(h.members), len(h.rooms))
		}
		if panics := h.listener.Stats().Panics; panics != 0 {
			t.Errorf("%d panics", panics)
		}
	})
	t.Cleanup(stop)
	return h, stop
}

// A visitor is somebody with a plain connection.
type visitor struct {
	*testing.T
	net.Conn
	lines *bufio.Reader
}

func visit(t *testing.T, h *hall) visitor {
	t.Helper()
	conn, err := net.Dial("tcp", h.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	return visitor{t, conn, bufio.NewReader(conn)}
}

// deafen keeps the system from receiving megabytes for somebody who does not
// read: the outbox overflows after fewer lines.
func (v visitor) deafen() {
	v.Helper()
	if err := v.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		v.Fatal(err)
	}
}

// enter is visit with a name, in the lobby.
func enter(t *testing.T, h *hall, name string) visitor {
	t.Helper()
	v := visit(t, h)
	v.say("/nick " + name)
	v.hear("* you are " + name)
	if line := v.line(); !strings.HasPrefix(line, "* in lobby: ") {
		t.Fatalf("heard %q", line)
	}
	return v
}

func (v visitor) say(line string) {
	v.Helper()
	if _, err := io.WriteString(v, line+"\n"); err != nil {
		v.Fatal(err)
	}
}

func (v visitor) line() string {
	v.Helper()
	line, err := v.lines.ReadString('\n')
	if err != nil {
		v.Fatalf("heard %q, then %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (v visitor) hear(want string) {
	v.Helper()
	if got := v.line(); got != want {
		v.Fatalf("heard %q, want %q", got, want)
	}
}

// end wants nothing but the end of the connection.
func (v visitor) end() {
	v.Helper()
	if rest, err := io.ReadAll(v.lines); len(rest) > 0 || err != nil {
		v.Errorf("heard %q and %v, want the end", rest, err)
	}
}

// eachWay runs a test with every way in which the event loop can call handlers.
func eachWay(t *testing.T, test func(t *testing.T, config eventloop.Config)) {
	for name, config := range map[string]eventloop.Config{
		"std":    {Engine: eventloop.EngineStd},
		"spawn":  {Dispatch: eventloop.DispatchSpawn},
		"inline": {Dispatch: eventloop.DispatchInline},
		"auto":   {Dispatch: eventloop.DispatchAuto},
	} {
		t.Run(name, func(t *testing.T) { test(t, config) })
	}
}

// TestChat_GoesAsTheGuideSays plays the conversation that the guide prints:
// "alice> text" is what alice sends, "alice< text" what she reads.
func TestChat_GoesAsTheGuideSays(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/eventloop.md")
	if err != nil {
		t.Fatal(err)
	}
	spoken := regexp.MustCompile(`(?m)^    (\w+)([<>]) (.+)$`).FindAllStringSubmatch(string(guide), -1)
	if len(spoken) < 10 {
		t.Fatalf("the guide has a conversation of %d lines", len(spoken))
	}
	eachWay(t, func(t *testing.T, config eventloop.Config) {
		h, _ := start(t, config)
		visitors := map[string]visitor{}
		for _, line := range spoken {
			name, direction, text := line[1], line[2], line[3]
			v, known := visitors[name]
			if !known {
				v = visit(t, h)
				visitors[name] = v
			}
			switch {
			case direction == ">":
				v.say(text)
			case text == "(end)":
				v.end()
			default:
				v.hear(text)
			}
		}
	})
}

func TestChat_Limits(t *testing.T) {
	long := strings.Repeat("x", lineBytes)
	tests := map[string]struct {
		send string
		want string
		ends bool
	}{
		"longest line":       {"/nick a\n" + long[1:] + "\n/quit\n", "* you are a\n* in lobby: a\n* goodbye\n", true},
		"long line":          {"/nick a\n" + long + "\n", "* you are a\n* in lobby: a\n! a line has at most 512 bytes\n", true},
		"long without end":   {long, "! a line has at most 512 bytes\n", true},
		"much without end":   {strings.Repeat(long, 100), "! a line has at most 512 bytes\n", true},
		"zeros":              {strings.Repeat("\x00", lineBytes), "! a line has at most 512 bytes\n", true},
		"long name":          {"/nick " + long[:21] + "\n", "! a name has 1 to 20 letters and digits (got 21)\n", false},
		"no name":            {"/nick\n", "! a name has 1 to 20 letters and digits (got 0)\n", false},
		"name like a reply":  {"/nick *\n", "! a name has letters and digits only (got '*')\n", false},
		"name that escapes":  {"/nick a\x1b[2J\n", "! a name has letters and digits only (got '\ufffd')\n", false},
		"name in two words":  {"/nick a b\n", "! a name has letters and digits only (got ' ')\n", false},
		"name in Cyrillic":   {"/nick \u0430\n", "! a name has letters and digits only (got '\u0430')\n", false},
		"silence of nobody":  {"hello\n/who\n", "! who are you? Say /nick NAME\n! who are you? Say /nick NAME\n", false},
		"unknown command":    {"/exec rm\n", "! there are /nick NAME, /join ROOM, /who and /quit\n", false},
		"who with argument":  {"/who lobby\n", "! /who takes no argument\n", false},
		"empty lines":        {"\n\r\n \n/quit\n", "* goodbye\n", true},
		"ends of Windows":    {"/nick a\r\n/quit\r\n", "* you are a\n* in lobby: a\n* goodbye\n", true},
		"nothing after quit": {"/quit\n/nick a\n", "* goodbye\n", true},
		"own name again":     {"/nick a\n/nick a\n", "* you are a\n* in lobby: a\n! a is somebody else, or you\n", false},
		"own room again":     {"/nick a\n/join lobby\n", "* you are a\n* in lobby: a\n! you are there\n", false},
	}
	eachWay(t, func(t *testing.T, config eventloop.Config) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				h, _ := start(t, config)
				v := visit(t, h)
				// What has been refused need not be read to its end.
				if _, err := io.WriteString(v, test.send); err != nil && !test.ends {
					t.Fatal(err)
				}
				got := make([]byte, len(test.want))
				if n, err := io.ReadFull(v.lines, got); err != nil || string(got) != test.want {
					t.Fatalf("heard %q and %v, want %q", got[:n], err, test.want)
				}
				if test.ends {
					v.end()
				}
			})
		}
	})
}

func TestChat_HostileTextReachesOthersHarmless(t *testing.T) {
	h, _ := start(t, eventloop.Config{})
	bob, mallory := enter(t, h, "bob"), enter(t, h, "mallory")
	bob.hear("* mallory came")
	mallory.say("hi\x1b]0;gotcha\a\xff\xfe\x00\u202e\rüber\t☃")
	bob.hear("<mallory> hi\ufffd]0;gotcha\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdüber\ufffd☃")
}

// TestChat_EverybodyHearsEverything lets many speak at once: nothing is lost,
// mixed or out of order as long as the outboxes suffice.
func TestChat_EverybodyHearsEverything(t *testing.T) {
	const members, lines = 8, 50
	eachWay(t, func(t *testing.T, config eventloop.Config) {
		h, _ := start(t, config)
		var visitors []visitor
		for i := range members {
			v := enter(t, h, fmt.Sprintf("m%d", i))
			for _, earlier := range visitors {
				earlier.hear(fmt.Sprintf("* m%d came", i))
			}
			visitors = append(visitors, v)
		}
		var group sync.WaitGroup
		for _, v := range visitors {
			group.Go(func() {
				for i := range lines {
					if _, err := fmt.Fprintf(v, "line %d\n", i); err != nil {
						t.Error(err)
					}
				}
			})
			group.Go(func() {
				next := map[string]int{}
				for range (members - 1) * lines {
					line, err := v.lines.ReadString('\n')
					name, text, _ := strings.Cut(line, " ")
					if want := fmt.Sprintf("line %d\n", next[name]); err != nil || text != want {
						t.Errorf("heard %q and %v, want %q", line, err, want)
						return
					}
					next[name]++
				}
			})
		}
		group.Wait()
	})
}

// talkUntil lets alice say numbered lines, each of which bob hears before the
// next, until done. It returns how many she said.
func talkUntil(t *testing.T, alice, bob visitor, done func(heard string) bool) int {
	t.Helper()
	padding := strings.Repeat("x", lineBytes-50)
	for i := range 100_000 { // 50 MB: no system buffers as much for one connection.
		alice.say(fmt.Sprintf("%d %s", i, padding))
		line := bob.line()
		if done(line) {
			return i + 1
		}
		if !strings.HasPrefix(line, fmt.Sprintf("<alice> %d ", i)) {
			t.Fatalf("bob heard %q after %d lines", line, i)
		}
	}
	t.Fatal("100,000 lines did not suffice")
	return 0
}

// TestChat_SlowReaderLosesLinesAlone has one member who reads only after the
// outbox has overflowed. Meanwhile the others talk as if nothing was, and
// afterwards every line was heard or counted as lost.
func TestChat_SlowReaderLosesLinesAlone(t *testing.T) {
	h, _ := start(t, eventloop.Config{})
	slow := enter(t, h, "slow")
	alice := enter(t, h, "alice")
	slow.hear("* alice came")
	bob := enter(t, h, "bob")
	slow.hear("* bob came")
	alice.hear("* bob came")
	h.mu.Lock()
	outbox := h.members["slow"]
	h.mu.Unlock()
	said := talkUntil(t, alice, bob, func(string) bool {
		outbox.mu.Lock()
		defer outbox.mu.Unlock()
		return outbox.lost > 9
	})
	heard, lost := 0, 0
	for heard+lost < said {
		line, gap := slow.line(), 0
		if _, err := fmt.Sscanf(line, "* you read too slowly: %d lines lost", &gap); err == nil {
			lost += gap // There may be several, since the system's buffers grow.
			continue
		}
		if !strings.HasPrefix(line, fmt.Sprintf("<alice> %d ", heard+lost)) {
			t.Fatalf("heard %.30q after %d lines, and %d that were lost", line, heard, lost)
		}
		heard++
	}
	if lost < 10 || heard+lost != said {
		t.Errorf("%d lines, of which %d were heard and %d lost", said, heard, lost)
	}
	alice.say("all there again?")
	slow.hear("<alice> all there again?")
}

// TestChat_WhoNeverReadsIsSentAway has one member who never reads.
func TestChat_WhoNeverReadsIsSentAway(t *testing.T) {
	eachWay(t, func(t *testing.T, config eventloop.Config) {
		config.WriteStallTimeout = 100 * time.Millisecond
		h, _ := start(t, config)
		enter(t, h, "deaf").deafen()
		alice := enter(t, h, "alice")
		bob := enter(t, h, "bob")
		alice.hear("* bob came")
		talkUntil(t, alice, bob, func(heard string) bool { return heard == "* deaf does not read and was sent away" })
		if stalls := h.listener.Stats().WriteStalls; stalls != 1 {
			t.Errorf("%d write stalls", stalls)
		}
	})
}

// TestChat_WhoAsksAndNeverReadsIsSentAway has one whose own replies cannot
// leave: the handler waits, so nothing more is read, and nobody else notices.
func TestChat_WhoAsksAndNeverReadsIsSentAway(t *testing.T) {
	eachWay(t, func(t *testing.T, config eventloop.Config) {
		config.WriteStallTimeout = 100 * time.Millisecond
		h, _ := start(t, config)
		bob := enter(t, h, "bob")
		deaf := enter(t, h, "deaf")
		deaf.deafen()
		bob.hear("* deaf came")
		questions := bytes.Repeat([]byte("/who\n"), 10_000)
		var err error
		for i := 0; err == nil; i++ {
			if i == 10_000 {
				t.Fatal("500 MB of questions were read, and no reply")
			}
			_, err = deaf.Write(questions)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		bob.hear("* deaf does not read and was sent away")
	})
}

// TestChat_HalfCloseIsGoodbye has a member who says everything at once, stops
// sending, and reads what there is to read. The last line has no end and does
// not count.
func TestChat_HalfCloseIsGoodbye(t *testing.T) {
	eachWay(t, func(t *testing.T, config eventloop.Config) {
		for _, last := range []string{"", "by"} {
			h, _ := start(t, config)
			bob := enter(t, h, "bob")
			brief := visit(t, h)
			if _, err := io.WriteString(brief, "/nick brief\nhello\n"+last); err != nil {
				t.Fatal(err)
			}
			if err := brief.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			brief.hear("* you are brief")
			brief.hear("* in lobby: bob brief")
			brief.end()
			bob.hear("* brief came")
			bob.hear("<brief> hello")
			bob.hear("* brief left")
		}
	})
}

func TestChat_ResetIsNoticed(t *testing.T) {
	h, _ := start(t, eventloop.Config{})
	bob, gone := enter(t, h, "bob"), enter(t, h, "gone")
	bob.hear("* gone came")
	if err := gone.Conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	bob.hear("* gone was cut off")
}

// TestChat_StopLetsEverybodyRead stops while lines are under way and one member
// has begun a line.
func TestChat_StopLetsEverybodyRead(t *testing.T) {
	eachWay(t, func(t *testing.T, config eventloop.Config) {
		h, stop := start(t, config)
		alice, bob := enter(t, h, "alice"), enter(t, h, "bob")
		alice.hear("* bob came")
		for i := range 100 {
			alice.say(fmt.Sprint(i))
		}
		alice.say("/who")
		alice.hear("* in lobby: alice bob") // So all was handled before.
		if _, err := io.WriteString(bob, "I was about to"); err != nil {
			t.Fatal(err)
		}
		stop()
		for i := range 100 {
			bob.hear(fmt.Sprintf("<alice> %d", i))
		}
		for _, v := range []visitor{alice, bob} {
			v.hear("* the chat is over")
			v.end()
		}
		if conn, err := net.Dial("tcp", h.listener.Addr().String()); err == nil {
			conn.Close()
			t.Error("a connection was accepted after the end")
		}
	})
}

// TestRun_SaysWhereItListens runs the whole program.
// Members that send without a pause would keep the chat open.
func TestChat_StopsAlthoughPeersGoOn(t *testing.T) {
	h, stop := start(t, eventloop.Config{})
	var peers sync.WaitGroup
	for range 24 {
		conn, err := net.Dial("tcp", h.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		peers.Go(func() { _, _ = io.Copy(io.Discard, conn) })
		peers.Go(func() {
			defer conn.Close()
			for lines, err := bytes.Repeat([]byte("\n"), 1<<20), error(nil); err == nil; {
				_, err = conn.Write(lines)
			}
		})
	}
	for h.listener.Stats().BytesRead < 8<<20 {
		runtime.Gosched()
	}
	stop()
	peers.Wait()
}

func TestRun_SaysWhereItListens(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", writer) }()
	line, err := bufio.NewReader(reader).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "chatting on ")
	if err != nil || !found {
		t.Fatalf("printed %q, %v", line, err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), "127.0.0.1:no", io.Discard); err == nil {
		t.Error("run with a wrong address succeeded")
	}
}
