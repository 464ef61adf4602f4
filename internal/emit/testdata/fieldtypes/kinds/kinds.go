// Package kinds has types that a definition asks for with go.type.
package kinds

import (
	"fmt"
	"strings"
)

// Flag is on or off.
type Flag bool

// Level is a small number.
type Level int8

// Port is the port of an address.
type Port int16

// Cents is an amount of money.
type Cents int32

// String returns the amount as people write it.
func (c Cents) String() string { return fmt.Sprintf("%d.%02d", c/100, c%100) }

// Celsius is a temperature.
type Celsius float64

// Name is the name of somebody.
type Name string

// MarshalText returns the name with a word in front.
func (n Name) MarshalText() ([]byte, error) { return []byte("name:" + string(n)), nil }

// UnmarshalText takes what MarshalText returns.
func (n *Name) UnmarshalText(text []byte) error {
	name, found := strings.CutPrefix(string(text), "name:")
	if !found {
		return fmt.Errorf("%q is no name", text)
	}
	*n = Name(name)
	return nil
}

// Key is some bytes.
type Key []byte
