package fulmar_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestScoped_RequestsStayUntilTheyAreAnswered has handlers of many calls look into
// requests, which refer to memory that other calls get after them. Builds with checks
// overwrite it then.
func TestScoped_RequestsStayUntilTheyAreAnswered(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
			OnScoped: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
				runtime.Gosched()
				if message.Text == "refused" {
					return nil, &testservice.Refused{Reason: message.Parts[0].Text}
				}
				return message, nil
			},
		})
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		var group sync.WaitGroup
		for caller := range 16 {
			group.Go(func() {
				letter := string(rune('a' + caller))
				for i, length := range []int{1, 100, 3_000, 20_000, limits.LinkedStringBytes - 100, limits.LinkedStringBytes, 100_000, 10, 0} {
					sent := &testservice.Message{Text: strings.Repeat(letter, length), Number: thrift.Some(int64(i)),
						Parts: []testservice.Message{{Text: letter}}, Labels: map[string]string{letter: letter + letter}}
					got, err := api.Scoped(context.Background(), sent)
					if err != nil || !got.Equal(withEmptyParts(sent)) {
						t.Errorf("caller %d, %d bytes: got another message back, %v", caller, length, err)
					}
				}
				_, err := api.Scoped(context.Background(), &testservice.Message{Text: "refused", Parts: []testservice.Message{{Text: letter}}})
				if refused, ok := err.(*testservice.Refused); !ok || refused.Reason != letter {
					t.Errorf("caller %d: %v, want it refused because of %s", caller, err, letter)
				}
			})
		}
		group.Wait()
	})
}

// TestScoped_ArgumentsStayUntilTheCallIsAnswered: an argument that is scoped by itself, of a
// method that is not, stays while calls behind it arrive in the memory where it was.
func TestScoped_ArgumentsStayUntilTheCallIsAnswered(t *testing.T) {
	eachEngine(t, func(t *testing.T, config fulmar.ServerConfig) {
		var arrived atomic.Int64
		server := serve(t, config, &testservice.Stub{
			OnWord: func(_ context.Context, word, other string) (string, error) {
				// Others come first, if there are some.
				for began, patience := arrived.Add(1), 1_000; arrived.Load() < began+4 && patience > 0; patience-- {
					runtime.Gosched()
				}
				return word + other, nil
			},
		})
		api := dial(t, fulmar.ClientConfig{Target: server.address})
		var group sync.WaitGroup
		for caller := range 32 {
			group.Go(func() {
				for i := range 50 {
					word := strings.Repeat(string(rune('A'+caller)), 1+(37*i)%3_000)
					if got, err := api.Word(context.Background(), word, "."); err != nil || got != word+"." {
						t.Errorf("caller %d: another word than that of %d bytes came back, %d bytes long, %v", caller, len(word), len(got), err)
						return
					}
				}
			})
		}
		group.Wait()
	})
}

// withEmptyParts is m as it is after a journey: what it does not have is empty.
func withEmptyParts(m *testservice.Message) *testservice.Message {
	m = m.Clone()
	for i := range m.Parts {
		m.Parts[i].Parts, m.Parts[i].Labels = []testservice.Message{}, map[string]string{}
	}
	return m
}

// TestScoped_WhatIsKeptTooLongChanges shows what the policy is about: who keeps a string
// must clone it. A string that is so long that it may be sent from where it is stays.
func TestScoped_WhatIsKeptTooLongChanges(t *testing.T) {
	if !assert.Enabled {
		t.Skip("needs the invariants tag or the race detector, whose builds overwrite memory that was given back")
	}
	for _, test := range []struct {
		length  int
		changes bool
	}{{10, true}, {10_000, true}, {limits.LinkedStringBytes, false}} {
		var kept, cloned string
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
			OnScoped: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
				kept, cloned = message.Text, strings.Clone(message.Text)
				return &testservice.Message{}, nil
			},
		})
		api := dial(t, fulmar.ClientConfig{Target: server.address})
		text := strings.Repeat("x", test.length)
		if _, err := api.Scoped(context.Background(), &testservice.Message{Text: text}); err != nil {
			t.Fatal(err)
		}
		if err := server.stop(); err != nil { // so that the call has ended
			t.Fatal(err)
		}
		if changed := kept != text; changed != test.changes || cloned != text {
			t.Errorf("%d bytes: changed %v, want %v; the clone is as it was: %v", test.length, changed, test.changes, cloned == text)
		}
	}
}
