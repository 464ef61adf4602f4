package emit

import (
	"go/token"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// The annotations that change what is generated.
const (
	// annotationName gives the Go name of a declaration, method or field.
	annotationName = "go.name"
	// annotationTag adds to the struct tag of a field, or replaces our part of
	// it: go.tag = 'json:"sku" db:"sku"'.
	annotationTag = "go.tag"
	// annotationDeprecated gives the reason why something should not be used.
	annotationDeprecated = "deprecated"
	// annotationStreaming makes a method a stream.
	annotationStreaming = "streaming.mode"
)

// findAnnotation returns the last annotation with the key, or nil.
func findAnnotation(annotations schema.Annotations, key string) *schema.Annotation {
	for i := len(annotations) - 1; i >= 0; i-- {
		if annotations[i].Key == key {
			return &annotations[i]
		}
	}
	return nil
}

// goName returns the name that the definition asks for, or makes one.
func (g *generator) goName(name string, annotations schema.Annotations) string {
	annotation := findAnnotation(annotations, annotationName)
	if annotation == nil {
		return exportedName(name)
	}
	if len(annotation.Value) > limits.IDLNameBytes || !identifier.MatchString(annotation.Value) || !token.IsExported(annotation.Value) {
		g.errorf(annotation.Position, "annotation %s: %.80q is not a name that Go exports, expected letters, digits and underscores after a capital letter, at most %d bytes",
			annotationName, annotation.Value, limits.IDLNameBytes)
		return exportedName(name)
	}
	return annotation.Value
}

// checkAnnotations reports annotations that ask for what cannot be had. Those
// for names are checked where they are used.
func (g *generator) checkAnnotations() {
	for _, file := range g.program.Files {
		for _, s := range file.Structs {
			for _, field := range s.Fields {
				annotation := findAnnotation(field.Annotations, annotationTag)
				if annotation == nil {
					continue
				}
				if _, ok := parseTag(annotation.Value); !ok {
					g.errorf(annotation.Position, `annotation %s: %.80q is not a struct tag, expected for example json:"name" db:"name"`, annotationTag, annotation.Value)
				}
			}
		}
		for _, service := range file.Services {
			for _, method := range service.Methods {
				annotation := findAnnotation(method.Annotations, annotationStreaming)
				if annotation != nil && annotation.Value != "unary" {
					g.errorf(annotation.Position, "method %s.%s: streams are not supported yet (%s is %.80q)", service.Name, method.Name, annotationStreaming, annotation.Value)
				}
			}
		}
	}
}

// tagPart is one key:"value" of a struct tag.
type tagPart struct{ key, value string }

// parseTag reads the conventional form of struct tags.
func parseTag(text string) (parts []tagPart, ok bool) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		key, rest, found := strings.Cut(text, ":")
		if !found || key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == '"' || r >= 0x7f }) {
			return nil, false
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil || quoted[0] != '"' {
			return nil, false
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, false
		}
		parts = append(parts, tagPart{key, value})
		text = rest[len(quoted):]
	}
	return parts, true
}

// tag returns the struct tag of a member as a Go string literal.
func (p *printer) tag(m member) string {
	parts := []tagPart{{"json", identifierText(m.Name)}}
	if m.form != formValue && m.absence == absenceOmitted {
		parts[0].value += ",omitzero"
	}
	if annotation := findAnnotation(m.Annotations, annotationTag); annotation != nil {
		given, _ := parseTag(annotation.Value)
		for _, part := range given {
			if part.key == "json" {
				parts[0].value = part.value
			} else {
				parts = append(parts, part)
			}
		}
	}
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.key + ":" + strconv.Quote(part.value)
	}
	text := strings.Join(texts, " ")
	if strconv.CanBackquote(text) {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

// withDeprecation adds the paragraph that Go tools look for.
func withDeprecation(doc string, annotations schema.Annotations) string {
	annotation := findAnnotation(annotations, annotationDeprecated)
	if annotation == nil {
		return doc
	}
	reason := annotation.Value
	if reason == "" || reason == "1" {
		reason = "the definition says so."
	}
	return paragraphs(doc, "Deprecated: "+reason)
}
