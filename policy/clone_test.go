package policy_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// TestDocument_CloneSharesNothing fills in every field that documents have, by reflection so
// that none that comes later is forgotten.
func TestDocument_CloneSharesNothing(t *testing.T) {
	var document policy.Document
	fill(reflect.ValueOf(&document).Elem())
	if document.Client.Methods["x"].Retry.Attempts == 0 || document.Server.Methods["x"].Running == 0 {
		t.Fatalf("fields are not filled in: %+v", document)
	}
	clone := document.Clone()
	if !reflect.DeepEqual(clone, document) {
		t.Errorf("%+v\nis no clone of\n%+v", clone, document)
	}
	wantApart(t, "document", reflect.ValueOf(clone), reflect.ValueOf(document))
	wantApart(t, "client", reflect.ValueOf(document.Client.Clone()), reflect.ValueOf(document.Client))
	wantApart(t, "server", reflect.ValueOf(document.Server.Clone()), reflect.ValueOf(document.Server))
	if empty := (policy.Document{}).Clone(); !reflect.DeepEqual(empty, policy.Document{}) {
		t.Errorf("of nothing: %+v", empty)
	}
}

// fill sets all of a value to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Map:
		key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(element)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, element)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	default:
		panic(fmt.Sprintf("documents have a %v: Clone and this test have to know it", v.Type()))
	}
}

// wantApart checks that two equal values have nothing in common that can be changed.
func wantApart(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			wantApart(t, path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	case reflect.Map:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
		for _, key := range a.MapKeys() {
			wantApart(t, fmt.Sprintf("%s[%v]", path, key), a.MapIndex(key), b.MapIndex(key))
		}
	case reflect.Slice:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
		for i := range a.Len() {
			wantApart(t, fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
		}
	case reflect.Pointer:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
			return
		}
		wantApart(t, path, a.Elem(), b.Elem())
	}
}

// TestTrial_KeepsItsPolicy: whoever has made a trial may change the map that he made it of.
func TestTrial_KeepsItsPolicy(t *testing.T) {
	methods := map[string]policy.Method{"Orders": {Breaker: policy.Breaker{FailurePercent: 1, MinCalls: 1}}}
	trial, err := policy.NewTrial(policy.Client{Methods: methods}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	delete(methods, "Orders")
	for range 2 {
		now := time.Unix(1, 0)
		trial.End(trial.Begin("Orders", "place", now, false), observe.Code(14), false, now) // unavailable
	}
	if state := trial.Show(); state.Refused != 1 {
		t.Errorf("%v", state)
	}
}
