package codectest

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/gen/messages"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func build(t *testing.T, name string) thrift.Struct {
	t.Helper()
	for _, set := range codec.DataSets() {
		if set.Name == name {
			return set.Build(0)
		}
	}
	t.Fatalf("no data set %q", name)
	return nil
}

// Every change of a value is a difference.
func TestContents_SeeEverything(t *testing.T) {
	for name, change := range map[string]func(*messages.Mixed){
		"text":                func(m *messages.Mixed) { m.Trace += "x" },
		"number":              func(m *messages.Mixed) { m.Items[5].ID++ },
		"bool":                func(m *messages.Mixed) { m.Items[5].Flag = !m.Items[5].Flag },
		"double":              func(m *messages.Mixed) { m.Items[5].Score++ },
		"optional field":      func(m *messages.Mixed) { m.Total.Set(1) },
		"optional field less": func(m *messages.Mixed) { m.Total.Clear() },
		"struct in a struct":  func(m *messages.Mixed) { m.Items[5].Tag.Val = "" },
		"last item":           func(m *messages.Mixed) { m.Items = m.Items[1:] },
		"order of items":      func(m *messages.Mixed) { m.Items[0], m.Items[1] = m.Items[1], m.Items[0] },
		"text in a list":      func(m *messages.Mixed) { m.Items[5].Labels[2] += "x" },
		"number in a list":    func(m *messages.Mixed) { m.Items[5].IDs[3]++ },
		"entry more":          func(m *messages.Mixed) { m.Items[5].Attrs["x"] = "y" },
		"struct in a map": func(m *messages.Mixed) {
			for _, item := range m.Index {
				item.Kind++
				return
			}
		},
	} {
		changed := build(t, "mixed-20k").(*messages.Mixed)
		change(changed)
		if differ(contents(changed), contents(build(t, "mixed-20k"))) == "" {
			t.Errorf("%s: no difference was found", name)
		}
	}
	if difference := differ(contents(build(t, "mixed-20k")), contents(build(t, "mixed-20k"))); difference != "" {
		t.Errorf("the same message differs: %s", difference)
	}
}
