package thrift

import (
	"encoding/hex"
	"fmt"
)

// UUID is the Thrift base type uuid: 16 bytes in the order of their text form.
type UUID [16]byte

// uuidText is the length of the text form, hyphens included.
const uuidText = 36

// ParseUUID reads the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx with hexadecimal
// digits of either case.
func ParseUUID(text string) (UUID, error) {
	var id UUID
	if err := id.UnmarshalText([]byte(text)); err != nil {
		return UUID{}, err
	}
	return id, nil
}

// MustParseUUID is ParseUUID for constants; it panics if text is no UUID.
func MustParseUUID(text string) UUID {
	id, err := ParseUUID(text)
	if err != nil {
		panic(err)
	}
	return id
}

// String returns the text form in lower case.
func (id UUID) String() string {
	text, _ := id.MarshalText()
	return string(text)
}

// MarshalText returns the text form in lower case.
func (id UUID) MarshalText() ([]byte, error) {
	text := make([]byte, 0, uuidText)
	for i, group := range [...][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, group)
	}
	return text, nil
}

// UnmarshalText reads the text form; id is unchanged if that fails.
func (id *UUID) UnmarshalText(text []byte) error {
	if len(text) != uuidText {
		return fmt.Errorf("uuid: %.40q has %d characters (want %d)", text, len(text), uuidText)
	}
	digits := make([]byte, 0, 32)
	for i, c := range text {
		if hyphen := i == 8 || i == 13 || i == 18 || i == 23; hyphen != (c == '-') {
			return fmt.Errorf("uuid: %.40q has no hyphen, or one too many, at character %d", text, i)
		} else if !hyphen {
			digits = append(digits, c)
		}
	}
	var parsed UUID
	if _, err := hex.Decode(parsed[:], digits); err != nil {
		return fmt.Errorf("uuid: %.40q: %w", text, err)
	}
	*id = parsed
	return nil
}
