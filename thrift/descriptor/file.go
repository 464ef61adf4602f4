package descriptor

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

//go:generate fulmar gen --no-methods --no-descriptors -o .. descriptor.thrift

// File is what generated code says about the definition that it comes from: the
// variable OrdersDescriptor is about orders.thrift. It costs nothing before it is asked
// something; it is then decoded, once. Several goroutines may ask one File. What the
// methods return is shared by all who ask and must not be changed.
type File struct {
	// Encoded is a Definition as a message in Thrift Binary, and Imports are the files
	// that types in it refer to. Whoever makes a File sets them before its first use.
	Encoded string
	Imports []*File

	once    sync.Once
	err     error
	decoded Definition
	// What is declared, by its name.
	structs  map[string]*Struct
	enums    map[string]*Enum
	services map[string]*Service
}

// Definition returns all that is declared. It fails if File.Encoded is not what fulmar
// gen has written.
func (f *File) Definition() (*Definition, error) {
	if err := f.load(); err != nil {
		return nil, err
	}
	return &f.decoded, nil
}

func (f *File) load() error {
	f.once.Do(func() {
		m := limits.DefaultMessage()
		m.Depth = limits.DescriptorDepth
		// The bytes are a copy that nobody else has, so strings may refer to them for ever.
		codec := thrift.Codec{Strings: thrift.StringsScoped}
		if _, err := codec.ReadBody([]byte(f.Encoded), &f.decoded, m, true); err != nil {
			f.err = fmt.Errorf("descriptor: %w", err)
			return
		}
		f.structs = byName(f.decoded.Structs, func(s *Struct) string { return s.Name })
		f.enums = byName(f.decoded.Enums, func(e *Enum) string { return e.Name })
		f.services = byName(f.decoded.Services, func(s *Service) string { return s.Name })
	})
	return f.err
}

func byName[T any](list []T, name func(*T) string) map[string]*T {
	found := make(map[string]*T, len(list))
	for i := range list {
		found[name(&list[i])] = &list[i]
	}
	return found
}

// ErrNotFound is returned for names that a file does not declare.
var ErrNotFound = errors.New("not declared")

// lookUp returns what the map of a file that was loaded has under the name.
func lookUp[T any](f *File, what, name string, declared func() map[string]*T) (*T, error) {
	if err := f.load(); err != nil {
		return nil, err
	}
	if found := declared()[name]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("descriptor: %s %.80q in %.80q: %w", what, name, f.decoded.Name, ErrNotFound)
}

// Struct returns the struct, union or exception that the definition calls name.
func (f *File) Struct(name string) (*Struct, error) {
	return lookUp(f, "struct", name, func() map[string]*Struct { return f.structs })
}

// Enum returns the enum that the definition calls name.
func (f *File) Enum(name string) (*Enum, error) {
	return lookUp(f, "enum", name, func() map[string]*Enum { return f.enums })
}

// Service returns the service that the definition calls name.
func (f *File) Service(name string) (*Service, error) {
	return lookUp(f, "service", name, func() map[string]*Service { return f.services })
}

// file returns the file that a type or service of this one refers to by number.
func (f *File) file(number int32) (*File, error) {
	if err := f.load(); err != nil {
		return nil, err // who asks may have a type of another file, and this one not be decoded
	}
	switch {
	case number == 0:
		return f, nil
	case number < 0 || int(number) > len(f.Imports) || f.Imports[number-1] == nil:
		return nil, fmt.Errorf("descriptor: file %d of the %d that %.80q imports", number, len(f.Imports), f.decoded.Name)
	default:
		return f.Imports[number-1], nil
	}
}

// StructOf returns the struct that a type of this file stands for, and the file in which
// that is declared, which is the one to ask about its fields.
func (f *File) StructOf(t *Type) (*Struct, *File, error) {
	if t.Kind != Kind_STRUCT {
		return nil, nil, fmt.Errorf("descriptor: a type is %v, expected STRUCT", t.Kind)
	}
	declaring, err := f.file(t.File)
	if err != nil {
		return nil, nil, err
	}
	s, err := declaring.Struct(t.Name)
	return s, declaring, err
}

// EnumOf returns the enum that a type of this file stands for.
func (f *File) EnumOf(t *Type) (*Enum, error) {
	if t.Kind != Kind_ENUM {
		return nil, fmt.Errorf("descriptor: a type is %v, expected ENUM", t.Kind)
	}
	declaring, err := f.file(t.File)
	if err != nil {
		return nil, err
	}
	return declaring.Enum(t.Name)
}

// Parent returns the service that a service of this file extends, and the file in which
// that is declared. Both are nil if there is none.
func (f *File) Parent(s *Service) (*Service, *File, error) {
	if s.Parent == "" {
		return nil, nil, nil
	}
	declaring, err := f.file(s.ParentFile)
	if err != nil {
		return nil, nil, err
	}
	parent, err := declaring.Service(s.Parent)
	return parent, declaring, err
}

// Method returns the method that a service of this file declares or inherits, and the
// file in which it is declared.
func (f *File) Method(s *Service, name string) (*Method, *File, error) {
	for seen := map[*Service]bool{}; !seen[s]; {
		seen[s] = true
		for i := range s.Methods {
			if s.Methods[i].Name == name {
				return &s.Methods[i], f, nil
			}
		}
		parent, declaring, err := f.Parent(s)
		if err != nil {
			return nil, nil, err
		}
		if parent == nil {
			return nil, nil, fmt.Errorf("descriptor: method %.80q: %w", name, ErrNotFound)
		}
		s, f = parent, declaring
	}
	return nil, nil, fmt.Errorf("descriptor: service %.80q extends itself", s.Name)
}

// Described is what generated structs can do, unless fulmar gen was told to leave it out.
type Described interface {
	thrift.Struct
	// DescribeThrift returns the file and the name of the struct.
	DescribeThrift() (*File, string)
}

// Of returns what is known about a generated struct, union or exception, which may be a
// nil pointer, and the file in which it is declared.
func Of(s Described) (*Struct, *File, error) {
	file, name := s.DescribeThrift()
	found, err := file.Struct(name)
	return found, file, err
}
