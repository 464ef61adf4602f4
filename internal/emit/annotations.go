package emit

import (
	"go/token"
	"slices"
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
	// annotationType gives a field a Go type of the user's.
	annotationType = "go.type"
	// annotationNested embeds a field: true or false.
	annotationNested = "thrift.nested"
	// annotationAlias says that a type is an alias: true or false. Typedefs are in any
	// case, and for structs thriftgo then leaves out methods that we do not generate.
	annotationAlias = "thrift.is_alias"
	// annotationInterface has thriftgo take a struct for an interface of the user's.
	annotationInterface = "thrift.is_interface"
	// annotationStrings says where decoded strings are kept: auto, message, own
	// or scoped.
	annotationStrings = "go.strings"
	// annotationEncoding says which bytes the messages of a method are: canonical or plain.
	annotationEncoding = "go.encoding"
	// annotationSet says what the sets of a field are: unique, list or map.
	annotationSet = "go.set"
	// annotationUnknown says what a struct does with fields that the definition does
	// not have: keep or drop.
	annotationUnknown = "go.unknown"
	// annotationView makes a view of a struct, and of those in it.
	annotationView = "go.view"
	// annotationViews says what of a method is a view: request, response, both or none.
	annotationViews = "go.views"
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
		return g.spelling.exportedName(name)
	}
	if len(annotation.Value) > limits.IDLNameBytes || !identifier.MatchString(annotation.Value) || !token.IsExported(annotation.Value) {
		g.errorf(annotation.Position, "annotation %s: %.80q is not a name that Go exports, expected letters, digits and underscores after a capital letter, at most %d bytes",
			annotationName, annotation.Value, limits.IDLNameBytes)
		return g.spelling.exportedName(name)
	}
	return annotation.Value
}

// changesGo says that an annotation asks for other Go than is printed without
// it: ours, and those of thriftgo and thriftrw. The rest is for others to read.
func changesGo(key string) bool {
	switch key {
	case annotationName, annotationTag, annotationType, annotationStrings, annotationEncoding, annotationSet, annotationUnknown, annotationView, annotationViews, annotationStreaming, annotationNested,
		annotationAlias, annotationInterface, "go.pkg":
		return true
	}
	return false
}

// checkAnnotations reports annotations that ask for what cannot be had. Those
// for names are checked where they are used.
func (g *generator) checkAnnotations() {
	for _, file := range g.program.Files {
		for _, constant := range file.Constants {
			g.checkEffects(constant.Annotations, annotationName)
			g.checkType(constant.Type)
		}
		for _, typedef := range file.Typedefs {
			g.checkEffects(typedef.Annotations, annotationName, annotationAlias, annotationInterface)
			g.checkAlias(typedef)
			g.checkInterface("typedef "+typedef.Name, typedef.Annotations)
			g.checkType(typedef.Type)
		}
		for _, enum := range file.Enums {
			g.checkEffects(enum.Annotations, annotationName)
			for _, value := range enum.Values {
				g.checkEffects(value.Annotations, annotationName)
			}
		}
		for _, s := range file.Structs {
			g.checkEffects(s.Annotations, g.followedByStructs()...)
			g.checkUnknown(s.Annotations)
			g.checkInterface(s.Category.String()+" "+s.Name, s.Annotations)
			g.checkFields(s.Fields, s)
		}
		for _, service := range file.Services {
			g.checkEffects(service.Annotations, g.followedByServices()...)
			g.checkStrings(service.Annotations)
			g.checkEncoding(service.Annotations)
			g.checkMethodViews(service.Annotations)
			for _, method := range service.Methods {
				g.checkMethod(method)
			}
		}
	}
}

// checkAlias warns of a typedef that is not meant to be an alias.
func (g *generator) checkAlias(typedef *schema.Typedef) {
	if annotation := findAnnotation(typedef.Annotations, annotationAlias); annotation != nil {
		if yes, _ := isTrue(annotation.Value); !yes {
			g.warningf(annotation.Position, "annotation %s: typedef %s is an alias in Go all the same, as all are", annotationAlias, typedef.Name)
		}
	}
}

// checkInterface warns of a type that is meant to be an interface in Go: nobody would know
// what to read into it. thriftgo has it with an option, for code that writes and reads
// nothing.
func (g *generator) checkInterface(what string, annotations schema.Annotations) {
	if annotation := findAnnotation(annotations, annotationInterface); annotation != nil {
		if yes, _ := isTrue(annotation.Value); yes {
			g.warningf(annotation.Position, "annotation %s: %s stays what it is, because an interface does not say what to read into it", annotationInterface, what)
		}
	}
}

// followedByStructs are the annotations that change what is generated for a struct.
func (g *generator) followedByStructs() []string {
	followed := []string{annotationName, annotationUnknown, annotationAlias, annotationInterface}
	if !g.options.Kitex {
		followed = append(followed, annotationView)
	}
	return followed
}

// followedByServices are those that change what is generated for a service, or for a
// method.
func (g *generator) followedByServices() []string {
	followed := []string{annotationName, annotationStrings, annotationEncoding}
	if !g.options.Kitex {
		followed = append(followed, annotationViews)
	}
	return followed
}

// checkEffects warns of annotations that change nothing where they stand, for
// others than followed, and of those that a later one replaces. Others, which are for
// others to read, may have several values.
func (g *generator) checkEffects(annotations schema.Annotations, followed ...string) {
	for i := range annotations {
		annotation := &annotations[i]
		switch {
		case annotation.Key != annotationDeprecated && !changesGo(annotation.Key):
		case annotation.Key != annotationDeprecated && !slices.Contains(followed, annotation.Key):
			g.warningf(annotation.Position, "annotation %s: has no effect here", annotation.Key)
		case annotation != findAnnotation(annotations, annotation.Key):
			g.warningf(annotation.Position, "annotation %s: is given again, and the last one counts", annotation.Key)
		}
	}
}

// checkType is checkEffects for a type as it is written in one place.
func (g *generator) checkType(t *schema.Type) {
	if t == nil {
		return
	}
	g.checkEffects(t.Annotations)
	if t.Typedef == nil {
		g.checkType(t.Key)
		g.checkType(t.Element)
	}
}

// checkFields checks the fields of s, or those of a method if that is nil.
func (g *generator) checkFields(fields []*schema.Field, s *schema.Struct) {
	for _, field := range fields {
		followed := []string{annotationTag}
		if s == nil || !g.embeds(field) {
			followed = append(followed, annotationName)
		}
		if s != nil && field.Type.Kind == schema.KindStruct {
			followed = append(followed, annotationNested)
			g.checkNested(s, field)
		}
		if holdsStrings(field.Type) {
			followed = append(followed, annotationStrings)
		}
		if s != nil && canHaveType(field.Type) && !g.options.Kitex {
			followed = append(followed, annotationType)
			g.checkFieldType(field)
		}
		if holdsSets(field.Type) {
			followed = append(followed, annotationSet)
		}
		g.checkEffects(field.Annotations, followed...)
		g.checkStrings(field.Annotations)
		g.checkSetForm(field, s != nil)
		g.checkType(field.Type)
		annotation := findAnnotation(field.Annotations, annotationTag)
		if annotation == nil {
			continue
		}
		if _, ok := parseTag(annotation.Value); !ok {
			g.errorf(annotation.Position, `annotation %s: %.80q is not a struct tag, expected for example json:"name" db:"name"`, annotationTag, annotation.Value)
		}
	}
}

func (g *generator) checkMethod(method *schema.Method) {
	g.checkEffects(method.Annotations, append(g.followedByServices(), annotationStreaming)...)
	g.checkStrings(method.Annotations)
	g.checkEncoding(method.Annotations)
	g.checkMethodViews(method.Annotations)
	g.checkViewsOf(method)
	g.checkType(method.Result)
	g.checkFields(method.Arguments, nil)
	g.checkFields(method.Throws, nil)
	g.checkStream(method)
}

func (g *generator) checkStrings(annotations schema.Annotations) {
	annotation := findAnnotation(annotations, annotationStrings)
	if annotation != nil && stringPolicy(annotations) == "" {
		g.errorf(annotation.Position, "annotation %s: %.80q is not known, expected auto, message, own or scoped", annotationStrings, annotation.Value)
	}
}

func (g *generator) checkEncoding(annotations schema.Annotations) {
	annotation := findAnnotation(annotations, annotationEncoding)
	if annotation != nil && annotation.Value != "canonical" && annotation.Value != "plain" {
		g.errorf(annotation.Position, "annotation %s: %.80q is not known, expected canonical or plain", annotationEncoding, annotation.Value)
	}
}

// isCanonical says that the messages of a method are in the canonical form.
func isCanonical(method *schema.Method) bool {
	annotation := findAnnotation(method.Annotations, annotationEncoding)
	if annotation == nil {
		annotation = findAnnotation(method.Service.Annotations, annotationEncoding)
	}
	return annotation != nil && annotation.Value == "canonical"
}

// stringPolicy is what package thrift calls the policy that the first of the
// annotations asks for that has one, "" if none does.
func stringPolicy(all ...schema.Annotations) string {
	for _, annotations := range all {
		annotation := findAnnotation(annotations, annotationStrings)
		if annotation == nil {
			continue
		}
		switch annotation.Value {
		case "auto":
			return "StringsAuto"
		case "message":
			return "StringsMessage"
		case "own":
			return "StringsOwn"
		case "scoped":
			return "StringsScoped"
		}
		return ""
	}
	return ""
}

// holdsStrings says that values of a type may have strings or binaries in them.
func holdsStrings(t *schema.Type) bool {
	switch t.Kind {
	case schema.KindString, schema.KindBinary, schema.KindStruct:
		return true
	case schema.KindList, schema.KindSet:
		return holdsStrings(t.Element)
	case schema.KindMap:
		return holdsStrings(t.Key) || holdsStrings(t.Element)
	default:
		return false
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
	parts = append(parts, p.addedTags(m.Field)...)
	return tagLiteral(parts)
}

// tagLiteral returns a struct tag as a Go string literal.
func tagLiteral(parts []tagPart) string {
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
