package cluster_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// TestStatic_DeliversItsListOnce: and whom it is delivered to may change it.
func TestStatic_DeliversItsListOnce(t *testing.T) {
	static := cluster.Static{{Address: "a:1"}, {Address: "b:1"}}
	var lists [][]cluster.Instance
	for range 2 {
		if err := static.Resolve(context.Background(), func(list []cluster.Instance) {
			lists = append(lists, slices.Clone(list))
			list[0].Address = "mine"
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(lists) != 2 || !reflect.DeepEqual(lists[0], []cluster.Instance(static)) || !reflect.DeepEqual(lists[1], lists[0]) {
		t.Errorf("two calls delivered %v, the list is %v", lists, static)
	}
}
