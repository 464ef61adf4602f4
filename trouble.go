package fulmar

import (
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// trouble remembers what is wrong with a source that is asked again and again, so that
// what stays wrong is said once. The zero value is a source with which nothing is wrong.
// Safe for concurrent use.
type trouble struct {
	mu sync.Mutex
	// last is what was last wrong, "" if something has come since, and at when.
	last string
	at   time.Time
}

// troubleGap is after how long without trouble the same trouble is news: what goes on is
// seen again within the longest pause.
const troubleGap = 6 * limits.ResolvePauseMax

// isNews notes that something is wrong, and reports whether that has to be said.
func (t *trouble) isNews(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	news := t.last != err.Error() || now.Sub(t.at) > troubleGap
	t.last, t.at = err.Error(), now
	return news
}

// end notes that nothing is wrong any more, and reports whether something was.
func (t *trouble) end() (was bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was = t.last != ""
	t.last = ""
	return was
}
