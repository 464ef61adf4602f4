package zookeeper

import "path"

// waker tells a loop that something may have changed. The session calls it, with its lock
// held; the loop takes what it was told.
type waker struct {
	session *session
	paths   []string
	wake    chan struct{}

	// news is guarded by the session's lock.
	news news
}

// news is what may have changed since it was taken last.
type news struct {
	// renewed: the session is another one, so nodes are gone and no watch is set.
	// reconnected: watches should have been set again.
	renewed, reconnected bool
	// touched are the nodes of which something was told, those of the waker and children
	// of them, and all stands for more than are kept.
	touched map[string]bool
	all     bool
}

// touchedMax is how many nodes are kept in mind.
const touchedMax = 10_000

// subscribe makes a waker for nodes, whose owner calls remove.
func (s *session) subscribe(paths ...string) *waker {
	w := &waker{session: s, paths: paths, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakers[w] = struct{}{}
	w.news.renewed = true
	for _, name := range paths {
		if s.paths[name] == nil {
			s.paths[name] = map[*waker]struct{}{}
		}
		s.paths[name][w] = struct{}{}
	}
	return w
}

func (w *waker) remove() {
	s := w.session
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wakers, w)
	for _, name := range w.paths {
		if delete(s.paths[name], w); len(s.paths[name]) == 0 {
			delete(s.paths, name)
		}
	}
}

// take returns what there is, and forgets it.
func (w *waker) take() news {
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	taken := w.news
	w.news = news{}
	return taken
}

// giveBack is for who could not do what news asked for.
func (w *waker) giveBack(n news) {
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	w.news.renewed = w.news.renewed || n.renewed
	w.news.reconnected = w.news.reconnected || n.reconnected
	w.news.all = w.news.all || n.all
	for name := range n.touched {
		w.note(name)
	}
}

func (w *waker) note(name string) {
	if w.news.touched == nil {
		w.news.touched = map[string]bool{}
	}
	if len(w.news.touched) >= touchedMax {
		w.news.all = true
		return
	}
	w.news.touched[name] = true
}

func (w *waker) touched(name string) {
	w.note(name)
	w.signal()
}

func (w *waker) reconnected(renewed bool) {
	w.news.renewed = w.news.renewed || renewed
	w.news.reconnected = true
	w.signal()
}

func (w *waker) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// parent is the node that a node is a child of.
func parent(name string) string { return path.Dir(name) }
