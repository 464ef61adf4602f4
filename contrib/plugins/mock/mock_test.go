package mock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/contrib/plugins/mock"
	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// generate runs the generator on a definition with the plugin and returns the
// mocks.
func generate(t *testing.T, text string, options map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	name := filepath.Join(folder, "shop.thrift")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	plugin, err := mock.New(options)
	if err != nil {
		t.Fatal(err)
	}
	result, err := gen.Run(gen.Config{Files: []string{name}, Output: filepath.Join(folder, "gen"), PackagePrefix: "example.com/gen"}, plugin)
	if err != nil {
		t.Fatalf("%v\n%v", err, result.Diagnostics)
	}
	content, err := os.ReadFile(filepath.Join(folder, "gen", "shop", "shop_mock.go"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestMock_MatchesGoldenFile(t *testing.T) {
	text := generate(t, `namespace go shop
struct Order { 1: i64 id }
service Base { list<Order> all() }
service Shop extends Base {
  Order get(1: i64 mock, 2: Order answer)
  void put(1: Order order)
  oneway void viewed(1: string sku)
  void putCalls()
  Order watch(1: Order stream) (streaming.mode = "server")
  Order sum(1: Order order) (streaming.mode = "client")
  Order trade(1: Order order) (streaming.mode = "bidirectional")
}
`, nil)
	testkit.Golden(t, "testdata/shop_mock.go.txt", []byte(text))
}

// TestMock_CostsLittleForEachArgument has a method of very many.
func TestMock_CostsLittleForEachArgument(t *testing.T) {
	cost := func(count int) uint64 {
		var text strings.Builder
		text.WriteString("namespace go shop\nservice Shop { void m(")
		for i := range count {
			fmt.Fprintf(&text, "%d: i32 a%d ", i+1, i)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		generate(t, text.String()+") }", nil)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	const count = 2500
	if once, twice := cost(count), cost(2*count); twice*10 > once*23 {
		t.Errorf("%d arguments cost %d bytes, twice as many %d: more than 2.3 times as much", count, once, twice)
	}
}

func TestMock_HasOptions(t *testing.T) {
	if text := generate(t, "namespace go shop\nservice Shop {}", map[string]string{"prefix": "Fake"}); !strings.Contains(text, "type FakeShop struct") {
		t.Errorf("%s", text)
	}
	for _, options := range []map[string]string{{"prefix": "fake"}, {"prefix": "Fake Shop"}, {"prefix": ""}, {"other": "x"}} {
		if _, err := mock.New(options); err == nil {
			t.Errorf("%v are accepted", options)
		}
	}
}
