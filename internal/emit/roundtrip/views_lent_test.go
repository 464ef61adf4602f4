package roundtrip_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods/parcel"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// lentArguments are arguments that are a view and nothing else.
type lentArguments struct {
	view
	lease thrift.Lease
}

func (*lentArguments) KeepsThrift() {}

func (a *lentArguments) LeaseThrift() (*thrift.Lease, string) { return &a.lease, "Service.method" }

// readLent makes v a view of a message that is lent, and returns what ends that.
func readLent(v view, message []byte) (end func(), err error) {
	arguments := &lentArguments{view: v}
	codec := thrift.Codec{Strings: thrift.StringsScoped}
	if refers, err := codec.ReadBody(message, arguments, limits.DefaultMessage(), true); err != nil || !refers {
		return nil, fmt.Errorf("it refers to the message: %v, %w", refers, err)
	}
	return func() { codec.EndLease(arguments) }, nil
}

// useLent compares a view of a message that is lent with a struct, and changes both. What
// getters have returned is the same when the memory has become something else.
func useLent(v view, s, donor thrift.Struct, message []byte, random *rand.Rand) string {
	message = bytes.Clone(message)
	end, err := readLent(v, message)
	if err != nil {
		return err.Error()
	}
	if problem := compareFields(v, s); problem != "" {
		return "lent: " + problem
	}
	fields := reflect.TypeOf(s).Elem()
	values := map[int]reflect.Value{}
	for i := range fields.NumField() {
		values[i] = reflect.ValueOf(v).MethodByName(fields.Field(i).Name).Call(nil)[0]
	}
	written, err := thrift.Marshal(v)
	if err != nil || !bytes.Equal(written, message) {
		return fmt.Sprintf("lent and written it is %x, %v", written, err)
	}
	decoded := s
	if structure := reflect.ValueOf(v).MethodByName("Struct"); fields.NumField() > 0 {
		decoded = structure.Call(nil)[0].Interface().(thrift.Struct)
	}
	before := fmt.Sprint(decoded)
	edited := reflect.New(reflect.TypeOf(v).Elem())
	edited.Elem().Set(reflect.ValueOf(v).Elem())
	if _, problem := editBoth(edited.Interface().(view), newLoaded(s, message), donor, random); problem != "" {
		return "lent: " + problem
	}
	pieces, _, err := v.AppendPieces(nil, nil)
	appended, appendErr := v.AppendTo(nil)
	if (err == nil) != (appendErr == nil) {
		return fmt.Sprintf("lent: its pieces are %v, and appended it is %v", err, appendErr)
	}
	end()
	for i := range message {
		message[i] = 0xa5
	}
	if err == nil && !bytes.Equal(bytes.Join(pieces, nil), appended) {
		return "lent: its pieces have changed with the memory"
	}
	for i, value := range values {
		want := reflect.ValueOf(s).Elem().Field(i)
		if want.Kind() == reflect.Struct && strings.HasPrefix(want.Type().Name(), "Opt[") {
			if want.IsZero() {
				continue
			}
			want = want.Addr().MethodByName("Get").Call(nil)[0]
		}
		if strings.Contains(fields.Field(i).Tag.Get("json"), "omitzero") && want.IsZero() {
			continue
		}
		if problem := compareValue(value, want); problem != "" {
			return fmt.Sprintf("%s has changed with the memory: %s", fields.Field(i).Name, problem)
		}
	}
	if after := fmt.Sprint(decoded); after != before {
		return fmt.Sprintf("the struct has changed with the memory: %s, it was %s", after, before)
	}
	if problem := usedTooLate(v, fields); problem != "" {
		return problem
	}
	if problem := usedTooLate(edited.Interface().(view), fields); problem != "" {
		return "changed before: " + problem
	}
	return ""
}

// usedTooLate reads all fields of a view whose call has ended, those of a struct, and
// writes it. It says what does not panic.
func usedTooLate(v view, fields reflect.Type) string {
	const want = "request of Service.method is used when its call has ended"
	if text := panicOf(func() { v.AppendTo(nil) }); !strings.Contains(text, want) {
		return "written too late: " + text
	}
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if text := panicOf(func() { reflect.ValueOf(v).MethodByName(name).Call(nil) }); !strings.Contains(text, want) {
			return name + " is read too late: " + text
		}
	}
	return ""
}

// newLoaded returns a new struct like s, of a message.
func newLoaded(s thrift.Struct, message []byte) thrift.Struct {
	loaded := newZero(s)
	if err := thrift.Unmarshal(message, loaded); err != nil {
		panic(err)
	}
	return loaded
}

// panicOf returns what f panics with, "" if it does not.
func panicOf(f func()) (text string) {
	defer func() {
		if cause := recover(); cause != nil {
			text = fmt.Sprint(cause)
		}
	}()
	f()
	return ""
}

func TestView_LentHasTheFieldsOfTheStruct(t *testing.T) {
	for _, test := range viewed {
		for seed := range uint64(20) {
			s := newFilled(test.prototype, seed)
			message, err := thrift.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if len(message) >= limits.LinkedStringBytes {
				continue
			}
			if problem := useLent(test.view(), s, newFilled(test.prototype, seed+1000), message, rand.New(rand.NewPCG(seed, 5))); problem != "" {
				t.Fatalf("%T, seed %d: %s", s, seed, problem)
			}
		}
	}
}

// TestView_LentPanicsWhenItIsUsedTooLate in each way in which it can be, whether the bytes
// were lent or, because there are many, kept.
func TestView_LentPanicsWhenItIsUsedTooLate(t *testing.T) {
	for _, parcels := range []int{1, 3_000} {
		message, err := thrift.Marshal(orderOf("north", parcels))
		if err != nil {
			t.Fatal(err)
		}
		if long := len(message) >= limits.LinkedStringBytes; long != (parcels > 1) {
			t.Fatalf("%d bytes", len(message))
		}
		var v viewmethods.OrderView
		if _, err := readLent(&v, message); err != nil {
			t.Fatal(err)
		}
		change := func(v viewmethods.OrderView) viewmethods.OrderView {
			v.SetID(8)
			v.ClearRegion()
			v.ClearImage()
			v.ClearParcels()
			return v
		}
		changed, fresh := change(v), viewOf(t, orderOf("north", 1))
		first := v.Parcels().At(0)
		uses := map[string]func(){
			"number": func() { v.ID() }, "text": func() { v.Region() }, "binary": func() { v.Image() }, "list": func() { v.Parcels() },
			"append": func() { v.AppendTo(nil) }, "append of a changed one": func() { changed.AppendTo(nil) },
			"pieces": func() { v.AppendPieces(nil, nil) }, "pieces of a changed one": func() { changed.AppendPieces(nil, nil) },
			"marshal": func() { thrift.Marshal(&v) }, "struct": func() { v.Struct() }, "string": func() { _ = v.String() },
			"JSON": func() { v.MarshalJSON() }, "equal": func() { v.Equal(&fresh) }, "equal to": func() { fresh.Equal(&v) },
			"set at": func() { v.SetParcelsAt(0, first) }, "remove at": func() { v.RemoveParcelsAt(0) }, "add": func() { v.AppendParcels(first) },
			"edit at": func() { v.EditParcelsAt(0, func(value *parcel.ParcelView) { value.SetGrams(1) }) },
			"has":     func() { v.HasImage() }, "has one that was set": func() { changed.HasID() }, "one that was set": func() { changed.ID() },
			"set":   func() { copied := v; copied.SetID(9) },
			"clear": func() { copied := v; copied.ClearImage() }, "one that is absent": func() { changed.Region() },
			"binary that is absent": func() { changed.Image() }, "list that is absent": func() { changed.Parcels() },
		}
		for name, use := range uses {
			if strings.HasPrefix(name, "remove") {
				continue // there would be none for the others
			}
			if text := panicOf(use); text != "" {
				t.Errorf("%d parcels, %s: it panics while it is lent: %s", parcels, name, text)
			}
		}
		end, err := readLent(&v, message) // without the changes
		if err != nil {
			t.Fatal(err)
		}
		changed = change(v)
		end()
		for name, use := range uses {
			if text := panicOf(use); !strings.Contains(text, "Service.method") {
				t.Errorf("%d parcels, %s: used too late it panics with %q", parcels, name, text)
			}
		}
		if first.Address() != "somewhere in north" {
			t.Error("what a view has returned has changed")
		}
		if err := v.Load(message); err != nil || v.Region() != "north" {
			t.Errorf("loaded again it is %v", err)
		}
	}
}

// TestView_LentStaysLentWhenItIsChanged where a setter gives it new bytes, or none: in unions,
// and where a field came twice.
func TestView_LentStaysLentWhenItIsChanged(t *testing.T) {
	const text, twice = "\x0b\x00\x02\x00\x00\x00\x05hello", "\x08\x00\x01\x00\x00\x00\x07\x08\x00\x01\x00\x00\x00\x08"
	set := func(leaf *views.LeafView) { leaf.SetNumber(3) }
	for name, change := range map[string]func(*views.ChoiceView){
		"set": func(v *views.ChoiceView) { v.SetNumber(3) }, "clear": func(v *views.ChoiceView) { v.ClearText() },
		"edit": func(v *views.ChoiceView) { v.EditLeaf(set) }, "append": func(v *views.ChoiceView) { v.AppendNumbers(3) },
	} {
		var v views.ChoiceView
		end, err := readLent(&v, []byte(text+"\x00"))
		if err != nil {
			t.Fatal(err)
		}
		kept := v
		change(&v)
		if v.HasText() || kept.Text() != "hello" {
			t.Errorf("%s: the text is %q, that of the copy %q", name, v.Text(), kept.Text())
		}
		end()
		for _, v := range []*views.ChoiceView{&v, &kept} {
			if problem := usedTooLate(v, reflect.TypeFor[views.Choice]()); problem != "" {
				t.Errorf("%s: %s", name, problem)
			}
		}
	}
	for name, change := range map[string]func(*views.LeafView){
		"set": set, "set another": func(v *views.LeafView) { v.SetText("x") }, "clear": func(v *views.LeafView) { v.ClearText() },
	} {
		var v views.LeafView
		message := []byte(twice + text + "\x00")
		end, err := readLent(&v, message)
		if err != nil {
			t.Fatal(err)
		}
		change(&v)
		before := v.Text()
		clear(message)
		if n := v.Number(); n != 8 && name != "set" || n != 3 && name == "set" || v.Text() != before {
			t.Errorf("%s: the number is %d, the text %q, before %q", name, n, v.Text(), before)
		}
		end()
		if problem := usedTooLate(&v, reflect.TypeFor[views.Leaf]()); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// TestView_LentIsNotCopied allocates for what is read, not for what came.
func TestView_LentIsNotCopied(t *testing.T) {
	const most = 4 << 10
	message, err := thrift.Marshal(orderOf("north", 300))
	if err != nil {
		t.Fatal(err)
	}
	if len(message) < 2*most || len(message) >= limits.LinkedStringBytes {
		t.Fatalf("%d bytes", len(message))
	}
	room := make([]byte, 0, 2*len(message))
	if n := testkit.Allocated(most, func() {
		var v viewmethods.OrderView
		if _, err := readLent(&v, message); err != nil {
			t.Fatal(err)
		}
		if region := v.Region(); region != "north" {
			t.Fatal(region)
		}
		v.SetID(9)
		if _, err := v.AppendTo(room); err != nil {
			t.Fatal(err)
		}
	}); n > most {
		t.Errorf("%d bytes are allocated for a message of %d", n, len(message))
	}
}
