package registries

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a text, such as a password, that is neither printed nor logged, whatever it is
// a part of. string(secret) is the text.
type Secret string

const redacted = "[secret]"

var (
	_ fmt.Formatter  = (*Secret)(nil)
	_ slog.LogValuer = (*Secret)(nil)
)

// Format prints that there is a secret, with every verb.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// LogValue is what a log gets.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText is what encoders get.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
