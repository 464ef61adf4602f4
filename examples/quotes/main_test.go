package main

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestDemo_MakesAllCalls(t *testing.T) {
	var out bytes.Buffer
	if err := demo(t.Context(), &out, ""); err != nil {
		t.Fatal(err)
	}
	const want = `Streams in gRPC, and Thrift on the same port
  unary                TEA costs 460
  server stream        TEA has cost [450 455 460]
  client stream        3 orders cost 5940
  both ways            10 TEA cost 4600, 2 CUP cost 1980
  both ways, an error  no symbol "gold"
  Thrift               5 trades, 12520 cents
  a stream in Thrift   the last trades were [4600 1980]
No Python was given (-python): Python is left out.
`
	if out.String() != want {
		t.Errorf("it wrote\n%swant\n%s", out.String(), want)
	}
}
