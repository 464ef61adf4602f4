package policy

// Methods returns how many methods a Trial knows.
func (t *Trial) Methods() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.methods)
}
