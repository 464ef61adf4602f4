package emit_test

import (
	"go/constant"
	"go/types"
	"maps"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/idl"
)

// serviceNames generates code and returns the constants that name services and
// methods, with their values.
func serviceNames(t *testing.T, files idl.Memory) map[string]string {
	t.Helper()
	const prefix = "example.com/gen"
	generated := generate(t, idl.Options{Files: []string{"/main.thrift"}, FileSystem: files}, prefix)
	c := newChecker(t)
	mustCheck(t, c, generated, prefix)
	found := map[string]string{}
	scope := c.checked[prefix+"/x"].Scope()
	for _, name := range scope.Names() {
		declared, ok := scope.Lookup(name).(*types.Const)
		if ok && (strings.Contains(name, "ServiceName") || strings.Contains(name, "FullMethodName")) {
			found[name] = constant.StringVal(declared.Val())
		}
	}
	return found
}

// TestGenerate_NamesServicesAndMethods checks that the constants hold the names
// of the definition, also where Go needs others.
func TestGenerate_NamesServicesAndMethods(t *testing.T) {
	cases := map[string]struct {
		definition string
		want       map[string]string
	}{
		"plain": {
			"service Orders { void place(), oneway void get_all() }",
			map[string]string{"OrdersServiceName": "Orders", "OrdersPlaceFullMethodName": "Orders.place", "OrdersGetAllFullMethodName": "Orders.get_all"},
		},
		"without methods": {"service orders {}", map[string]string{"OrdersServiceName": "orders"}},
		"another name in Go": {
			`service orders { void place() (go.name = "Put") } (go.name = "Shop")`,
			map[string]string{"ShopServiceName": "orders", "ShopPutFullMethodName": "orders.place"},
		},
		"inherited": {
			"service Base { void get() }\nservice Middle extends Base { void put() }\nservice Child extends Middle {}",
			map[string]string{
				"BaseServiceName": "Base", "BaseGetFullMethodName": "Base.get",
				"MiddleServiceName": "Middle", "MiddleGetFullMethodName": "Middle.get", "MiddlePutFullMethodName": "Middle.put",
				"ChildServiceName": "Child", "ChildGetFullMethodName": "Child.get", "ChildPutFullMethodName": "Child.put",
			},
		},
		"inherited from another package": {
			"service Child extends included.Base {}",
			map[string]string{"ChildServiceName": "Child", "ChildGetFullMethodName": "Child.get"},
		},
		"service's is taken": {
			"struct AServiceName {}\nservice A { void b() }",
			map[string]string{"A_ServiceName": "A", "A_BFullMethodName": "A.b"},
		},
		"method's is taken": {
			"struct ABFullMethodName {}\nservice A { void b() }",
			map[string]string{"AServiceName": "A", "AB_FullMethodName": "A.b"},
		},
		"inherited method's is taken": {
			"struct AGetFullMethodName {}\nservice A extends included.Base {}",
			map[string]string{"A_ServiceName": "A", "A_GetFullMethodName": "A.get"},
		},
		"services meet": {
			"service Aa { void bb_cc() }\nservice AaBb { void cc() }",
			map[string]string{
				"AaServiceName": "Aa", "AaBbCcFullMethodName": "Aa.bb_cc",
				"AaBbServiceName": "AaBb", "AaBbCc_FullMethodName": "AaBb.cc",
			},
		},
		"spellings meet": {
			"service A { void get_x(), void getX() }\nservice a {}",
			map[string]string{
				"AServiceName": "A", "AGetXFullMethodName": "A.get_x", "AGetX_FullMethodName": "A.getX", "A_ServiceName": "a",
			},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := serviceNames(t, idl.Memory{
				"/main.thrift":     "namespace go x\ninclude 'included.thrift'\n" + test.definition,
				"/included.thrift": "namespace go other\nservice Base { void get() }",
			})
			if !maps.Equal(got, test.want) {
				t.Errorf("the constants are\n%v, want\n%v", got, test.want)
			}
		})
	}
}
