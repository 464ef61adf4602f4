package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// log is the file that a step writes to. It is safe for concurrent use.
type log struct {
	name string
	mu   sync.Mutex
	file *os.File
}

func newLog(folder, step string) (*log, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	name := strings.Map(func(r rune) rune {
		if r == ' ' || r == '/' || r == ':' {
			return '-'
		}
		return r
	}, step)
	file, err := os.Create(filepath.Join(folder, name+".log"))
	if err != nil {
		return nil, err
	}
	return &log{name: file.Name(), file: file}, nil
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Write(p)
}

func (l *log) close() { _ = l.file.Close() }

// tail returns the last n bytes, from the start of a line.
func (l *log) tail(n int) string {
	content, err := os.ReadFile(l.name)
	if err != nil {
		return err.Error()
	}
	if len(content) <= n {
		return strings.TrimSpace(string(content))
	}
	text := string(content[len(content)-n:])
	return "...\n" + strings.TrimSpace(text[strings.IndexByte(text, '\n')+1:])
}
