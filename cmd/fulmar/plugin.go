package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// pluginPrefix is what the names of plugin programs begin with. Others cannot be
// started by --plugin.
const pluginPrefix = "fulmar-gen-"

// pluginProgram is a plugin that is another program.
type pluginProgram struct {
	name    string
	options map[string]string
	timeout time.Duration
	stderr  io.Writer
}

var (
	pluginName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	optionName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
)

// parsePlugin reads the value of --plugin: name, or name=key=value,key=value.
func parsePlugin(text string) (*pluginProgram, error) {
	name, rest, hasOptions := strings.Cut(text, "=")
	if len(name) > limits.PluginNameBytes || !pluginName.MatchString(name) {
		return nil, fmt.Errorf("--plugin %.80q: expected a name of small letters, digits and hyphens after a letter, at most %d bytes", text, limits.PluginNameBytes)
	}
	program := &pluginProgram{name: name, options: map[string]string{}}
	if !hasOptions {
		return program, nil
	}
	for option := range strings.SplitSeq(rest, ",") {
		key, value, found := strings.Cut(option, "=")
		switch _, twice := program.options[key]; {
		case !found || len(key) > limits.PluginNameBytes || !optionName.MatchString(key):
			return nil, fmt.Errorf("--plugin %s: %.80q is no option, expected key=value", name, option)
		case twice:
			return nil, fmt.Errorf("--plugin %s: option %s is there twice", name, key)
		case len(program.options) == limits.PluginOptions:
			return nil, fmt.Errorf("--plugin %s: too many options (limit %d)", name, limits.PluginOptions)
		}
		program.options[key] = value
	}
	return program, nil
}

func (p *pluginProgram) plugin() gen.Plugin { return gen.External(p.name, p.options, p.exchange) }

// exchange runs the program with the request on its standard input and returns
// its standard output. What it says on standard error is shown as it comes. When
// its time is over, or the user interrupts the run, it is killed with everything that
// it started in its process group.
func (p *pluginProgram) exchange(request []byte) ([]byte, error) {
	program := pluginPrefix + p.name
	found, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be run: %w", program, notFound(err))
	}
	// A terminal interrupts this process, but not the group of the program.
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(interrupted, p.timeout)
	defer cancel()
	run := exec.CommandContext(ctx, found)
	run.Stdin = bytes.NewReader(request)
	answer := &boundedBuffer{limit: limits.PluginResponseBytes, full: cancel}
	said := &commentary{out: p.stderr, prefix: program + ": ", left: limits.PluginStderrBytes}
	run.Stdout, run.Stderr = answer, said
	run.WaitDelay = limits.PluginExitTime
	kill := inGroup(run)
	run.Cancel = kill
	err = run.Run()
	said.end()
	if errors.Is(err, exec.ErrWaitDelay) {
		// What it left running goes with it. At other times its group may be
		// gone, and its number somebody else's.
		_ = kill()
	}
	switch {
	case answer.overflow:
		return nil, fmt.Errorf("%s: the response is too long (limit %d bytes)", program, limits.PluginResponseBytes)
	case interrupted.Err() != nil:
		return nil, fmt.Errorf("%s: was killed: %w", program, context.Cause(interrupted))
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: is not done after %v and was killed (--plugin-timeout)", program, p.timeout)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s: ended, but something that it started still has its output open after %v", program, limits.PluginExitTime)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	return answer.content.Bytes(), nil
}

// notFound is the cause of a failed search without the name, and says that what
// is in the working directory only is not run.
func notFound(err error) error {
	if failed := (*exec.Error)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// boundedBuffer keeps what is written up to a limit, and calls full once that is
// passed. It is used by one goroutine.
type boundedBuffer struct {
	content  bytes.Buffer
	limit    int
	overflow bool
	full     func()
}

func (b *boundedBuffer) Write(text []byte) (int, error) {
	if b.content.Len()+len(text) > b.limit {
		b.overflow = true
		b.full()
		return 0, errors.New("too long")
	}
	return b.content.Write(text)
}

// commentary shows what a program says, line by line, with the name of the
// program in front and nothing that a terminal would obey. It is used by one
// goroutine.
type commentary struct {
	out    io.Writer
	prefix string
	line   []byte
	left   int
}

func (c *commentary) Write(text []byte) (int, error) {
	count := len(text)
	if c.left < 0 {
		return count, nil
	}
	if len(text) > c.left {
		text = text[:c.left]
	}
	c.left -= count
	for len(text) > 0 {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		c.line = append(c.line, line...)
		if text = rest; ended {
			c.show()
		}
	}
	if c.left < 0 {
		c.show()
		fmt.Fprintf(c.out, "%smore is not shown (limit %d bytes)\n", c.prefix, limits.PluginStderrBytes)
	}
	return count, nil
}

// end shows a last line that was not ended.
func (c *commentary) end() {
	if len(c.line) > 0 {
		c.show()
	}
}

func (c *commentary) show() {
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case unicode.IsControl(r):
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(string(c.line), "?"))
	c.line = c.line[:0]
	fmt.Fprintf(c.out, "%s%s\n", c.prefix, text)
}
