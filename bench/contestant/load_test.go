//go:build linux

package contestant

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The server is asked until it has executed what was sent, as long as it goes on.
func TestArrived_WaitsAsLongAsTheServerGoesOn(t *testing.T) {
	for name, test := range map[string]struct {
		limit, sent uint64
		complaint   string
	}{
		"all":          {50, 50, ""},
		"some":         {40, 50, "40 calls as they were sent, of 50"},
		"none of none": {0, 0, ""},
		"too many":     {51, 50, "calls as they were sent, of 50"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var executed atomic.Uint64
				step := min(test.limit, 2) // So slow that it takes longer than the patience for one call.
				if test.limit > test.sent {
					step = test.limit
				}
				client, end := pair(t, func() uint64 {
					return min(executed.Add(step), test.limit)
				})
				begun := time.Now()
				err := arrived(client, test.sent)
				if (err == nil) != (test.complaint == "") || err != nil && !strings.Contains(err.Error(), test.complaint) {
					t.Errorf("%v, want %q", err, test.complaint)
				}
				if patience := arrivalPoll * arrivalPatience; err != nil && time.Since(begun) < patience {
					t.Errorf("it gave up after %v, want %v of silence", time.Since(begun), patience)
				}
				if err := end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestCalls_WithoutRepliesNeedSomebodyToAsk(t *testing.T) {
	_, err := calls(t.Context(), Load{Sent: func() uint64 { return 0 }}, loadOptions{}, nil)
	if err == nil || !strings.Contains(err.Error(), "-control") {
		t.Errorf("%v, want that there is no control", err)
	}
}
