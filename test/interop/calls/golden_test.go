package calls_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/test/interop/cases"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/base"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everythingapache"
	"github.com/fulmar-rpc/fulmar/test/interop/notation"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// The frames in golden were captured from the peers, see python/capture.py. The
// generated code has to read them as what cases.json says, and to write the
// same bytes, but for the order of fields. No peer is needed for that.

// frame is one captured message, without the length of a framed one.
type frame struct {
	peer, protocol, name, direction string

	kind   byte
	method string
	seqID  int32
	body   []byte
}

func TestGolden_IsReadAsTheCaseAndWrittenAsItWas(t *testing.T) {
	byName := map[string]cases.Case{}
	for _, c := range loadCases(t, "cases.json").Cases {
		byName[c.Name] = c
	}
	for _, f := range loadFrames(t) {
		t.Run(strings.Join([]string{f.peer, f.protocol, f.name, f.direction}, "/"), func(t *testing.T) {
			c, found := byName[f.name]
			switch {
			case f.kind == 3:
				checkException(t, f)
			case !found || c.Method != f.method:
				t.Fatalf("no case %s that calls %s", f.name, f.method)
			case f.direction == "request":
				checkBody(t, f, methods()[f.method].NewRequest().(thrift.Struct), c.Arguments)
			default:
				checkBody(t, f, newResult(t, f.method), expectedResult(t, c))
			}
		})
	}
}

func loadFrames(t *testing.T) (frames []frame) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(peer.Folder(), "golden", "*", "*", "*.hex"))
	if err != nil || len(files) < 90 {
		t.Fatalf("%d golden files (%v), want at least 90", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content, err := testkit.Hex(string(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		parts := strings.Split(filepath.ToSlash(file), "/")
		parts = parts[len(parts)-3:]
		name, direction, _ := strings.Cut(strings.TrimSuffix(parts[2], ".hex"), ".")
		frames = append(frames, parseFrame(t, content, frame{peer: parts[0], protocol: parts[1], name: name, direction: direction}))
	}
	return frames
}

func parseFrame(t *testing.T, content []byte, f frame) frame {
	t.Helper()
	if f.protocol == "framed" {
		if length := binary.BigEndian.Uint32(content); int(length) != len(content)-4 {
			t.Fatalf("%s: the frame says it has %d bytes, and has %d", f.name, length, len(content)-4)
		}
		content = content[4:]
	}
	if !bytes.HasPrefix(content, []byte{0x80, 0x01, 0x00}) {
		t.Fatalf("%s: not a message: % x", f.name, content)
	}
	name := content[8 : 8+binary.BigEndian.Uint32(content[4:])]
	rest := content[8+len(name):]
	f.kind, f.method, f.seqID, f.body = content[3], string(name), int32(binary.BigEndian.Uint32(rest)), rest[4:]
	return f
}

// checkBody decodes the body of a frame into message, compares it with value,
// and encodes it again.
func checkBody(t *testing.T, f frame, message thrift.Struct, value map[string]any) {
	t.Helper()
	if err := thrift.Unmarshal(f.body, message); err != nil {
		t.Fatal(err)
	}
	if err := types().Match(notation.Expand(value, "golden"), reflect.ValueOf(message)); err != nil {
		t.Error(err)
	}
	encoded, err := thrift.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	ours, oursRest := inOrder(t, encoded)
	theirs, theirsRest := inOrder(t, f.body)
	if !bytes.Equal(ours, theirs) || len(oursRest)+len(theirsRest) > 0 {
		t.Errorf("encoded again, by ids: % x\nwant:                  % x", ours, theirs)
	}
}

// expectedResult returns the fields of the result struct that the case expects.
func expectedResult(t *testing.T, c cases.Case) map[string]any {
	t.Helper()
	if c.Throws == nil {
		if c.Result == nil {
			return map[string]any{}
		}
		return map[string]any{"success": c.Result}
	}
	fields := map[string]any{}
	for name, members := range c.Throws {
		fields[strings.ToLower(name[:1])+name[1:]] = members
	}
	return fields
}

// newResult returns an empty result struct. Descriptions of methods only know
// how to make requests.
func newResult(t *testing.T, method string) thrift.Struct {
	t.Helper()
	results := map[string]thrift.Struct{
		"ping":              &base.BasePingResult{},
		"stamp":             &base.BaseStampResult{},
		"flipI32":           &everything.EverythingFlipI32Result{},
		"repeatText":        &everything.EverythingRepeatTextResult{},
		"describeStrict":    &everything.EverythingDescribeStrictResult{},
		"echoScalars":       &everything.EverythingEchoScalarsResult{},
		"echoContainers":    &everything.EverythingEchoContainersResult{},
		"echoTree":          &everything.EverythingEchoTreeResult{},
		"freshDefaults":     &everything.EverythingFreshDefaultsResult{},
		"scale":             &everything.EverythingScaleResult{},
		"joinArguments":     &everything.EverythingJoinArgumentsResult{},
		"fail":              &everything.EverythingFailResult{},
		"failVoid":          &everything.EverythingFailVoidResult{},
		"echoIdentified":    &everythingapache.ApacheEchoIdentifiedResult{},
		"echoContainerKeys": &everythingapache.ApacheEchoContainerKeysResult{},
	}
	result, found := results[method]
	if !found {
		t.Fatalf("no result struct for %s in this list", method)
	}
	return result
}

// checkException compares an EXCEPTION message with what Fulmar's clients make
// of the same bytes elsewhere: it has a type, and the sequence id of the
// request.
func checkException(t *testing.T, f frame) {
	t.Helper()
	want := map[string]uint32{"raw_unknown_method": 1, "exception_undeclared": 6}[f.name]
	end := append(binary.BigEndian.AppendUint32([]byte{8, 0, 2}, want), 0)
	if !bytes.HasSuffix(f.body, end) {
		t.Errorf("body % x, want it to end with % x", f.body, end)
	}
	// Kitex counts its calls, the others send 0.
	wantSequence := map[string]int32{"raw_unknown_method": 9}[f.name]
	if f.peer == "kitex" {
		wantSequence = 1
	}
	if f.seqID != wantSequence {
		t.Errorf("sequence id %d, want %d", f.seqID, wantSequence)
	}
}
