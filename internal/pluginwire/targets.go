package pluginwire

import (
	"errors"
	"fmt"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// Targets finds what the indexes of a response mean, and the other way round.
type Targets struct {
	program *schema.Program
	encoder *encoder
	// structOf and fieldOf are the two indexes of a field.
	structOf, fieldOf map[*schema.Field]int
	enums             []*schema.Enum
	structs           []*schema.Struct
	services          []*schema.Service
}

// NewTargets returns those of a model.
func NewTargets(program *schema.Program) *Targets {
	t := &Targets{program: program, encoder: newEncoder(program), structOf: map[*schema.Field]int{}, fieldOf: map[*schema.Field]int{}}
	for _, file := range program.Files {
		for _, s := range file.Structs {
			for i, field := range s.Fields {
				t.structOf[field], t.fieldOf[field] = len(t.structs), i
			}
			t.structs = append(t.structs, s)
		}
		t.enums = append(t.enums, file.Enums...)
		t.services = append(t.services, file.Services...)
	}
	return t
}

// Of returns what an insertion is of.
func (t *Targets) Of(insertion Insertion) (any, error) {
	given := 0
	for _, index := range []*int{insertion.File, insertion.Struct, insertion.Enum, insertion.Service} {
		if index != nil {
			given++
		}
	}
	if given != 1 || insertion.Field != nil && insertion.Struct == nil {
		return nil, errors.New("expected one of file, struct, enum and service, or struct and field")
	}
	switch {
	case insertion.File != nil:
		return t.File(*insertion.File)
	case insertion.Enum != nil:
		return member(t.enums, *insertion.Enum, "enum")
	case insertion.Service != nil:
		return member(t.services, *insertion.Service, "service")
	}
	s, err := member(t.structs, *insertion.Struct, "struct")
	if err != nil || insertion.Field == nil {
		return s, err
	}
	return member(s.Fields, *insertion.Field, "field")
}

// File returns the file with an index.
func (t *Targets) File(index int) (*schema.File, error) {
	return member(t.program.Files, index, "file")
}

func member[T any](list []*T, index int, what string) (*T, error) {
	if index < 0 || index >= len(list) {
		return nil, fmt.Errorf("%s %d: there are %d", what, index, len(list))
	}
	return list[index], nil
}

// Refer sets the indexes of an insertion. It fails if of is not of the model.
func (t *Targets) Refer(insertion *Insertion, of any) error {
	known := false
	refer := func(to **int, index int, found bool) { *to, known = &index, found }
	switch node := of.(type) {
	case *schema.File:
		index, found := t.encoder.files[node]
		refer(&insertion.File, index, found)
	case *schema.Struct:
		index, found := t.encoder.structs[node]
		refer(&insertion.Struct, index, found)
	case *schema.Field:
		index, found := t.structOf[node]
		refer(&insertion.Struct, index, found)
		refer(&insertion.Field, t.fieldOf[node], found)
	case *schema.Enum:
		index, found := t.encoder.enums[node]
		refer(&insertion.Enum, index, found)
	case *schema.Service:
		index, found := t.encoder.services[node]
		refer(&insertion.Service, index, found)
	}
	if !known {
		return fmt.Errorf("the %T is not part of the model", of)
	}
	return nil
}
