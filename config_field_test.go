package fulmar_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// TestServerConfig_EveryFieldHasAnEffect and TestClientConfig_EveryFieldHasAnEffect
// set one field at a time and look at what the server or client then does. Each
// field must have a row, and each row must see different things for different
// values, so a field that the code ignores, now or later, fails.
func TestServerConfig_EveryFieldHasAnEffect(t *testing.T) {
	t.Parallel() // it waits most of its time
	fields := map[string]field[fulmar.ServerConfig]{}
	for _, group := range []map[string]field[fulmar.ServerConfig]{serverPlaces(), serverUnknown(), serverEncodings(), serverStreams(), serverTimeouts(), serverGRPC(), serverBounds(), serverAdmission(), serverMessageLimits(), serverHooks(), serverSecurity(), serverDiscovery(), serverPolicies()} {
		maps.Copy(fields, group)
	}
	checkFields(t, fields)
}

func TestClientConfig_EveryFieldHasAnEffect(t *testing.T) {
	t.Parallel() // it waits most of its time
	fields := map[string]field[fulmar.ClientConfig]{}
	for _, group := range []map[string]field[fulmar.ClientConfig]{clientCalls(), clientWaits(), clientStreams(), clientTimeouts(), clientStalls(), clientEncodings(), clientBounds(), clientMessageLimits(), clientHooks(), clientSecurity(), clientDiscovery(), clientPolicies()} {
		maps.Copy(fields, group)
	}
	checkFields(t, fields)
}

// field says how to see what one field of the configuration C does.
type field[C any] struct {
	// observe uses a configuration in which only this field may be set, and
	// returns what it saw. It may set other fields that it needs.
	observe  func(t *testing.T, config C) any
	settings []setting
}

// setting is a value of a field, nil for the default, and what observe must
// return for it.
type setting struct {
	value any
	want  any
}

// span is what to want of a time that may be a little late.
type span struct{ from, to time.Duration }

func checkFields[C any](t *testing.T, fields map[string]field[C]) {
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[C]()) {
		if !f.IsExported() {
			continue
		}
		known[f.Name] = true
		row, ok := fields[f.Name]
		if !ok {
			t.Errorf("%v.%s has no row: a field that is ignored must fail a test", reflect.TypeFor[C](), f.Name)
			continue
		}
		if !row.distinguishes() {
			t.Errorf("%v.%s: the row wants the same of every value, so it cannot fail", reflect.TypeFor[C](), f.Name)
		}
		for _, setting := range row.settings {
			name := fmt.Sprintf("%s=%v", f.Name, setting.value)
			switch f.Type.Kind() {
			case reflect.Func, reflect.Pointer, reflect.Interface, reflect.Slice:
				name = fmt.Sprintf("%s set=%v", f.Name, setting.value != nil)
			}
			t.Run(name, func(t *testing.T) {
				var config C
				if setting.value != nil {
					value := reflect.ValueOf(setting.value)
					reflect.ValueOf(&config).Elem().FieldByIndex(f.Index).Set(value.Convert(f.Type))
				}
				if got := row.observe(t, config); !setting.matches(got) {
					t.Errorf("got %v, want %v", got, setting.want)
				}
			})
		}
	}
	for name := range fields {
		if !known[name] {
			t.Errorf("%v has no field %s", reflect.TypeFor[C](), name)
		}
	}
}

// distinguishes reports whether at least one value must be seen to differ from
// the first.
func (f field[C]) distinguishes() bool {
	for _, s := range f.settings {
		if s.want != f.settings[0].want {
			return true
		}
	}
	return false
}

func (s setting) matches(got any) bool {
	if want, ok := s.want.(span); ok {
		took, ok := got.(time.Duration)
		return ok && took >= want.from && took <= want.to
	}
	return got == s.want
}

// soonAfter allows for the server's looking at its connections twice a second.
func soonAfter(limit time.Duration) span { return span{limit, limit + time.Second} }

// answers reports whether the server answers a call over conn within a second.
func answers(t *testing.T, conn net.Conn, call []byte) bool {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	if _, err := conn.Write(call); err != nil {
		return false
	}
	_, err := io.ReadFull(conn, make([]byte, 16))
	return err == nil
}
