package guide_test

import (
	"encoding/json"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// cache keeps messages longer than the calls that they came with.
type cache struct{ last *testservice.Message }

// store keeps a copy if it is something new.
func (c *cache) store(message *testservice.Message) (changed bool) {
	if c.last.Equal(message) {
		return false
	}
	c.last = message.Clone() // nothing of the request stays in memory
	return true
}

func TestGenerated_MethodsWorkTogether(t *testing.T) {
	message := &testservice.Message{Text: "a", Number: thrift.Some[int64](7), Labels: map[string]string{"x": "y"}}
	var c cache
	if !c.store(message) || c.store(message) {
		t.Error("a message was not stored once")
	}
	message.Labels["x"] = "z"
	if !c.store(message) || c.last.Labels["x"] != "z" {
		t.Error("a change was not stored")
	}
	if got, want := message.String(), `testservice.Message(text: "a", number: 7, labels: {"x": "z"})`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	text, err := json.Marshal(message)
	if want := `{"text":"a","number":7,"parts":null,"labels":{"x":"z"}}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}
