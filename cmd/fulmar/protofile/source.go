package protofile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// root is a folder that names of files are relative to.
type root struct{ shown, real string }

// names returns what the files of the request are called in imports: their names relative
// to a folder of -I, or to the working directory without one.
func (l *loading) names() []string {
	dirs := l.request.IncludeDirs
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	for _, dir := range dirs {
		dir = path.Clean(filepath.ToSlash(dir))
		l.addRoot(dir, "-I "+dir)
	}
	if l.errors > 0 {
		return nil
	}
	l.included = len(l.roots)
	var names []string
	for _, file := range l.request.Files {
		if name, ok := l.name(file); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (l *loading) addRoot(dir, shown string) {
	real, err := l.files.RealPath(dir)
	if err != nil {
		l.errorf(schema.Position{File: shown}, "folder cannot be used: %s", reason(err))
		return
	}
	if !slices.ContainsFunc(l.roots, func(r root) bool { return r.real == real }) {
		l.roots = append(l.roots, root{dir, real})
		l.readable = append(l.readable, real)
	}
}

// name returns what imports call a file. One that is in no folder of -I is called as if
// its own folder were the last of them.
func (l *loading) name(file string) (name string, ok bool) {
	shown := path.Clean(filepath.ToSlash(file))
	at := schema.Position{File: shown}
	if strings.ContainsFunc(shown, unicode.IsControl) || strings.ContainsAny(shown, ",=") {
		l.errorf(schema.Position{File: strconv.Quote(shown)}, "file name holds a control character, a comma or an equals sign")
		return "", false
	}
	real, err := l.files.RealPath(shown)
	if errors.Is(err, fs.ErrNotExist) {
		// As with protoc, a name may be the one that imports have.
		if _, _, err := l.findIn(l.roots[:l.included], shown); err == nil {
			return shown, true
		}
		l.errorf(at, "no such file; names are relative to the working directory, or else to a folder of -I")
		return "", false
	}
	if err != nil {
		l.errorf(at, "cannot be read: %s", reason(err))
		return "", false
	}
	for _, r := range l.roots {
		switch {
		case r.shown == "." && fs.ValidPath(shown):
			name = shown
		case r.shown != "." && strings.HasPrefix(shown, strings.TrimSuffix(r.shown, "/")+"/"):
			name = strings.TrimPrefix(shown, strings.TrimSuffix(r.shown, "/")+"/")
		case real != r.real && idl.Within(r.real, real):
			name = strings.TrimPrefix(real, strings.TrimSuffix(r.real, "/")+"/")
		}
		if name != "" {
			break
		}
	}
	if name == "" {
		l.addRoot(path.Dir(shown), path.Dir(shown))
		name = path.Base(shown)
	}
	found, foundReal, err := l.find(name)
	switch {
	case err != nil:
		l.errorf(at, "%v", err)
		return "", false
	case foundReal != real:
		l.errorf(at, "is called %q, as is %s, which comes before it in the order of -I", clip(name), found)
		return "", false
	}
	return name, true
}

// find looks for a file in the roots.
func (l *loading) find(name string) (shown, real string, err error) { return l.findIn(l.roots, name) }

func (l *loading) findIn(roots []root, name string) (shown, real string, err error) {
	if !fs.ValidPath(name) || strings.ContainsAny(name, `\,=`) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", "", errors.New("expected the name of a file relative to a folder of -I, without . and .. and without commas")
	}
	for _, r := range roots {
		shown = path.Join(r.shown, name)
		real, err = l.files.RealPath(shown)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", "", errors.New(reason(err))
		}
		if !slices.ContainsFunc(l.readable, func(folder string) bool { return idl.Within(folder, real) }) {
			return "", "", errors.New("lies outside the folders of -I and of the named files; allow its folder with -I")
		}
		return shown, real, nil
	}
	var folders []string
	for _, r := range roots {
		folders = append(folders, r.shown)
	}
	return "", "", fmt.Errorf("%w in %s; -I names other folders that imports are relative to", errMissing, clip(strings.Join(folders, ", ")))
}

// read returns the text of a file, if it is one that can be compiled within limits.
func (l *loading) read(name string) (string, error) {
	shown, real, err := l.find(name)
	if err != nil {
		return "", err
	}
	content, err := l.files.ReadFile(real, l.bytes)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %s", reason(err))
	}
	l.shown[name] = shown
	l.bytes -= len(content)
	problem, line := l.scan(string(content))
	if problem != "" {
		l.errorf(schema.Position{File: shown, Line: line, Column: 1}, "%s", problem)
		return "", errReported
	}
	return string(content), nil
}

// errMissing is the error for a file that no folder has.
var errMissing = errors.New("not found")

// errReported is the error for a file about which there is a diagnostic.
var errReported = errors.New("has errors")

// reason leaves out the path that errors of package os repeat.
func reason(err error) string {
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

// scan counts words, marks and comments, and says what keeps a text from being compiled:
// the parser and what follows it call themselves for what is nested, take memory by the
// word, and time by the column of each.
func (l *loading) scan(text string) (problem string, line int) {
	at := place{line: 1}
	depth, inWord := 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '_' || c == '.' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			if !inWord {
				l.word(&at, i)
			}
			inWord = true
			continue
		}
		inWord = false
		switch {
		case c == '\n':
			at.newLine(i)
		case c <= ' ':
		case strings.HasPrefix(text[i:], "//"):
			l.word(&at, i)
			length := strings.IndexByte(text[i:], '\n')
			if length < 0 {
				return "", 0
			}
			i += length
			at.newLine(i)
		case strings.HasPrefix(text[i:], "/*"):
			l.word(&at, i)
			length := strings.Index(text[i+2:], "*/")
			if length < 0 {
				return "", 0 // the parser says so
			}
			if last := strings.LastIndexByte(text[i:i+2+length], '\n'); last >= 0 {
				at.line += strings.Count(text[i:i+last], "\n")
				at.newLine(i + last)
			}
			i += length + 3
		case c == '"' || c == '\'':
			l.word(&at, i)
			i = skipString(text, i)
		default:
			l.word(&at, i)
			switch c {
			case '{', '[', '(', '<':
				depth++
			case '}', ']', ')', '>':
				depth = max(depth-1, 0)
			}
		}
		switch {
		case depth > limits.IDLTypeDepth:
			return fmt.Sprintf("brackets are nested too deeply (limit %d)", limits.IDLTypeDepth), at.line
		case l.words < 0:
			return fmt.Sprintf("too many words in all files together (limit %d)", limits.IDLWords), at.line
		case l.columns < 0:
			at.newLine(i)
			return fmt.Sprintf("the line is too long: the columns of the words of all files add up to more than %d, of which those of this line are %d; break it",
				limits.ProtoColumns, at.worst), at.worstLine
		}
	}
	return "", 0
}

// place is where a text is read.
type place struct {
	line, start int
	// columns are those of the words of the line that were read, worst those of the worst
	// line, which is the one to tell the user of.
	columns, worst, worstLine int
}

// newLine begins the line behind i.
func (p *place) newLine(i int) {
	if p.columns > p.worst {
		p.worst, p.worstLine = p.columns, p.line
	}
	p.line, p.start, p.columns = p.line+1, i+1, 0
}

// word counts the one that begins at i.
func (l *loading) word(at *place, i int) {
	l.words--
	l.columns -= i - at.start
	at.columns += i - at.start
}

// skipString returns where the string that begins at i ends: at its quote, or its line.
func skipString(text string, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return i
		case '\n':
			return i - 1
		}
	}
	return i
}
