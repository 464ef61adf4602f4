# load: main.thrift paths.thrift
-- main.thrift --
include missing
include 5
namespace
namespace 5
namespace go
namespace go 5
cpp_include vector
struct Fine {}
-- paths.thrift --
namespace go ../../x
namespace py /absolute//comment
namespace rb acme/orders # comment
namespace js a..b
namespace as .a
namespace c a.
namespace cpp a b
namespace csharp a:b
namespace d ordеrs
namespace delphi a (key = "b") c
namespace erl "a" b
namespace fine acme.orders, namespace fine2 acme.orders struct A {} struct B {}
