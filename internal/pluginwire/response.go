package pluginwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Response is what a plugin program writes.
type Response struct {
	Protocol    int          `json:"protocol"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	Files       []AddedFile  `json:"files,omitempty"`
	Insertions  []Insertion  `json:"insertions,omitempty"`
}

// The severities of a Diagnostic.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// Diagnostic is something to tell the author of a definition. With an error
// nothing is generated.
type Diagnostic struct {
	Severity string   `json:"severity"`
	Position Position `json:"position,omitempty"`
	Message  string   `json:"message"`
}

// AddedFile is a file to add to the package of the definition with index File.
type AddedFile struct {
	File    int     `json:"file"`
	Suffix  string  `json:"suffix"`
	Imports Imports `json:"imports,omitempty"`
	Text    string  `json:"text"`
}

// Insertion is text for a point of what one of the indexes stands for; Field is
// one in the fields of Struct.
type Insertion struct {
	Point   string  `json:"point"`
	File    *int    `json:"file,omitempty"`
	Struct  *int    `json:"struct,omitempty"`
	Field   *int    `json:"field,omitempty"`
	Enum    *int    `json:"enum,omitempty"`
	Service *int    `json:"service,omitempty"`
	Imports Imports `json:"imports,omitempty"`
	Text    string  `json:"text"`
}

// UnmarshalJSON refuses a list that is too long before it makes a map of it.
func (i *Imports) UnmarshalJSON(text []byte) error {
	if len(text) > limits.PluginImportBytes {
		return fmt.Errorf("imports: too long (limit %d bytes, got %d)", limits.PluginImportBytes, len(text))
	}
	var imports map[string]string
	if err := json.Unmarshal(text, &imports); err != nil {
		return err
	}
	*i = imports
	return nil
}

// List returns the imports sorted by name.
func (i Imports) List() []schema.Import {
	var list []schema.Import
	for _, name := range slices.Sorted(maps.Keys(i)) {
		list = append(list, schema.Import{Name: name, Path: i[name]})
	}
	return list
}

// ImportsOf is the opposite of Imports.List.
func ImportsOf(list []schema.Import) Imports {
	if len(list) == 0 {
		return nil
	}
	imports := Imports{}
	for _, one := range list {
		imports[one.Name] = one.Path
	}
	return imports
}

// EncodeResponse writes a response.
func EncodeResponse(response Response) ([]byte, error) {
	response.Protocol = Version
	text, err := json.Marshal(response)
	if err != nil {
		return nil, fmt.Errorf("plugin response: %w", err)
	}
	if len(text) >= limits.PluginResponseBytes {
		return nil, fmt.Errorf("plugin response: too long (limit %d bytes, got %d)", limits.PluginResponseBytes, len(text))
	}
	return append(text, '\n'), nil
}

// ParseResponse reads the answer of a plugin program, which may be anything. It
// allocates a few times the length of text at most.
func ParseResponse(text []byte) (response Response, err error) {
	fail := func(err error) (Response, error) {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = errors.New("ends too early")
		}
		return Response{}, fmt.Errorf("response: %w", err)
	}
	switch {
	case len(text) > limits.PluginResponseBytes:
		return fail(fmt.Errorf("too long (limit %d bytes, got %d)", limits.PluginResponseBytes, len(text)))
	case len(bytes.TrimSpace(text)) == 0:
		return fail(errors.New("is empty"))
	case !utf8.Valid(text):
		return fail(errors.New("is not UTF-8"))
	}
	p := &responseParser{Decoder: json.NewDecoder(bytes.NewReader(text)), seen: map[string]bool{}}
	p.DisallowUnknownFields()
	if err := p.parse(&response); err != nil {
		return fail(p.place(err))
	}
	if _, err := p.Token(); !errors.Is(err, io.EOF) {
		return fail(fmt.Errorf("something follows its end, at byte %d", p.InputOffset()))
	}
	return response, nil
}

// responseParser reads the lists of a response one member at a time, because
// the members of a list can be many times shorter than what they become.
type responseParser struct {
	*json.Decoder
	seen    map[string]bool
	version *int
}

// place adds where in the text an error is, if it does not say so.
func (p *responseParser) place(err error) error {
	syntaxError := (*json.SyntaxError)(nil)
	switch {
	case errors.As(err, &syntaxError):
		return fmt.Errorf("is not JSON, at byte %d: %w", syntaxError.Offset, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return err
	default:
		return fmt.Errorf("%w, before byte %d", err, p.InputOffset())
	}
}

func (p *responseParser) parse(response *Response) error {
	if err := p.delimiter('{', "an object"); err != nil {
		return err
	}
	for p.More() {
		token, err := p.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		if p.seen[key] {
			return fmt.Errorf("key %.80q comes twice", key)
		}
		p.seen[key] = true
		switch key {
		case "protocol":
			err = p.Decode(&p.version)
		case "diagnostics":
			err = list(p, key, &response.Diagnostics)
		case "files":
			err = list(p, key, &response.Files)
		case "insertions":
			err = list(p, key, &response.Insertions)
		default:
			err = fmt.Errorf("key %.80q is not known", key)
		}
		if err != nil {
			return err
		}
	}
	if err := p.delimiter('}', "the end of the object"); err != nil {
		return err
	}
	if err := checkVersion(p.version); err != nil {
		return err
	}
	response.Protocol = *p.version
	for _, diagnostic := range response.Diagnostics {
		if diagnostic.Severity != SeverityError && diagnostic.Severity != SeverityWarning {
			return fmt.Errorf("severity %.80q, expected %q or %q", diagnostic.Severity, SeverityError, SeverityWarning)
		}
	}
	return nil
}

func (p *responseParser) delimiter(want json.Delim, name string) error {
	token, err := p.Token()
	if err == nil && token != want {
		err = fmt.Errorf("%.80q in place of %s", fmt.Sprint(token), name)
	}
	return err
}

func list[T any](p *responseParser, key string, to *[]T) error {
	if err := p.delimiter('[', "the list "+key); err != nil {
		return err
	}
	for p.More() {
		if len(*to) == limits.PluginItems {
			return fmt.Errorf("%s: too many (limit %d)", key, limits.PluginItems)
		}
		var member T
		if err := p.Decode(&member); err != nil {
			return fmt.Errorf("%s %d: %w", key, len(*to), err)
		}
		*to = append(*to, member)
	}
	return p.delimiter(']', "the end of the list "+key)
}

// DecodePosition reads a position of the model.
func DecodePosition(position Position) schema.Position { return position.decode() }

// EncodePosition is the opposite.
func EncodePosition(at schema.Position) Position { return position(at) }
