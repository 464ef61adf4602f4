package main

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestRun_PlacesAllOrders(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	const orders = `  an order for Europe      Europe has 2 lines of acme: 1890 cents
  an order for elsewhere   World has 2 lines of acme: 1890 cents
  a forged tenant          Europe has 2 lines of evil: 1890 cents
  an order of 400 KB       World has 20000 lines of bulk: 120000 cents
  an empty order           refused: nothing is ordered
  no tenant                unauthenticated
`
	const want = "Through a gateway with views\n" + orders + "Through a gateway with structs\n" + orders
	if out.String() != want {
		t.Errorf("it wrote\n%swant\n%s", out.String(), want)
	}
}
