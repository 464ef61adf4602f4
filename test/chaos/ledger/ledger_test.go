package ledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestJudge_SeesEveryBrokenPromise: one call each, which breaks one.
func TestJudge_SeesEveryBrokenPromise(t *testing.T) {
	ran := fulmar.NewError(fulmar.Internal, "it ran")
	cases := map[string]struct {
		err    error
		reply  uint64 // added to the id
		took   time.Duration
		times  int
		repeat bool
		want   string
	}{
		"a success":                      {times: 1, want: "clean"},
		"a failure that ran":             {err: ran, times: 1, want: "clean"},
		"one that may run twice":         {times: 2, repeat: true, want: "clean"},
		"a reply of another call":        {reply: 1, times: 1, want: "crossed 1"},
		"a success that never ran":       {want: "lost 1"},
		"a failure that ran, and didn't": {err: ran, want: "lost 1"},
		"one that ran twice":             {times: 2, want: "repeated 1"},
		"one that ended late":            {times: 1, took: 3 * time.Second, want: "late 1"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			book := ledger.NewBook(7)
			id := book.Begin(test.repeat, time.Second)
			book.End(id+test.reply, test.took, test.err)
			verdict := ledger.Judge([]*ledger.Book{book}, &ledger.Executions{Times: map[uint64]int{id: test.times}}, time.Second)
			if got := verdict.String(); !strings.Contains(got, test.want) || (verdict.Broken() == 0) != (test.want == "clean") {
				t.Errorf("%s (%d broken), want %s", got, verdict.Broken(), test.want)
			}
		})
	}
}

func TestJudge_SeesWhatNobodyMadeAndWhatNeverEnded(t *testing.T) {
	book := ledger.NewBook(1)
	id := book.Begin(false, 0)
	verdict := ledger.Judge([]*ledger.Book{book}, &ledger.Executions{Times: map[uint64]int{id + 1: 1}}, 0)
	if verdict.Unfinished != 1 || verdict.Unknown != 1 || verdict.Broken() != 2 {
		t.Errorf("%s, want an unfinished and an unknown call", verdict)
	}
}

// TestOutcomeOf_Ghosts: an error that says "not executed" is held to it.
func TestOutcomeOf_Ghosts(t *testing.T) {
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "unix://" + filepath.Join(t.TempDir(), "nobody")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = chaosapi.NewChaosClient(client).Call(t.Context(), &chaosapi.Request{})
	book := ledger.NewBook(1)
	id := book.Begin(false, 0)
	if call := book.End(0, 0, err); call.Outcome != ledger.NotExecuted {
		t.Fatalf("outcome %d of %v", call.Outcome, err)
	}
	verdict := ledger.Judge([]*ledger.Book{book}, &ledger.Executions{Times: map[uint64]int{id: 1}}, 0)
	if verdict.Ghosts != 1 || verdict.NotExecuted != 1 {
		t.Errorf("%s, want a ghost", verdict)
	}
	if got := ledger.OutcomeOf(errors.New("declared")); got != ledger.Executed {
		t.Errorf("an exception: outcome %d", got)
	}
}

func TestJournal_KeepsWhatWasEntered(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	for i := range uint64(2) {
		journal, err := ledger.OpenJournal(name)
		if err != nil {
			t.Fatal(err)
		}
		for id := range uint64(100) {
			if err := journal.Enter(id, i == 1 && id == 5); err != nil {
				t.Fatal(err)
			}
		}
		if err := journal.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var executions ledger.Executions
	if err := executions.Read(name); err != nil {
		t.Fatal(err)
	}
	if len(executions.Times) != 100 || executions.Times[99] != 2 || executions.Expired != 1 {
		t.Errorf("%d ids, 99 %d times, %d expired", len(executions.Times), executions.Times[99], executions.Expired)
	}
	if err := os.Truncate(name, entryOfNine-1); err != nil {
		t.Fatal(err)
	}
	if err := executions.Read(name); err == nil {
		t.Error("half an entry was read")
	}
}

const entryOfNine = 9
