// Mistakes around declarations.
struct {}
struct A.B {}
struct i32 {}
struct Name [
enum E
const i32 = 5
const X = 5
const i32 NO_VALUE
typedef i32
typedef Name i32 (x
service S extends {}
service T extends i32 {}
structure Wrong { 1: i32 a }
1: i32 stray
}
senum Old { "a", b }
include "late.thrift"
namespace go late
union Fine { 1: i32 a }
