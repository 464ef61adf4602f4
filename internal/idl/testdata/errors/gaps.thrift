# load: main.thrift namespace.thrift keyword.thrift broken.thrift
-- main.thrift --
// What can be read is checked even though other parts cannot be read, and what
// may be declared there is not said to be missing.
namespace go acme.orders
include "broken.thrift"
include "absent.thrift"
struct Reported { 1: Unknown a, 2: i8 b = 1000, 3: broken.NotThereEither c }
struct Unreadable [ 1: i32 a }
struct UsesIt { 1: Unreadable a, 2: list<broken.Lost> b, 3: absent.Anything c, 4: main.Unreadable d, 5: nowhere.X e }
enum Partly { A, = 5, C }
const Partly KNOWN = Partly.A
const Partly LOST = Partly.B
const map<Partly, i32> NUMBERS = {Partly.A: 1, Partly.C: 2, 1: 3}
struct Members { 1: required i32 a
  2: Missing
  3: required string c, i32 noID }
const Members MEMBERS = {"c": "x", "b": 5}
union Choice {
  1: i32 a
  2: = 5
}
const Choice CHOICE = {"b": 5}
const Choice WRONG = {"a": "text"}
union NoField {
  1 i32 a
}
const i32 TOO_LARGE = 99999999999999999999
const i8 FROM_IT = TOO_LARGE
const absent.Kind KIND = absent.Kind.ONE
const broken.Kind OTHER_KIND = broken.Kind.ONE
const i32 FROM_ENUM = absent.Kind.ONE
typedef broken.Kind Alias
const i32 FROM_ALIAS = Alias.ONE
exception Problem { 1: string text
  2: string }
service Base {
  void known()
  void unknown(
}
service Orders extends Base {
  void known(1: Unreadable a) throws (1: Problem p, 2: absent.Problem q, 3: Members m)
  oneway i32 wrong(1: i32
    2: i32 b, i32 c)
}
service Far extends absent.Service {}
service Further extends broken.Service {}
service None extends Unheard {}
struct Twice {}
struct Twice {}
strcut Misspelled { 1: i32 a }
struct UsesMisspelled { 1: Misspelled a, 2: Unknown2 b }
const list<i32> LIST = 1, 2, 3]
const i32 ELEMENT = LIST
struct Closed { 1: i32 a } 2: i32 b }
const Closed CLOSED = {"b": 1}
-- broken.thrift --
namespace go acme.broken
struct Lost { 1: i32 a
enum Kind { ONE TWO = }
service Service {
-- namespace.thrift --
// Its package is not known, so its names collide with nothing.
namespace go acme/orders
struct Members {}
include main.thrift
struct Late { 1: main.Reported a, 2: other.Thing b, 3: Unknown c }
-- keyword.thrift --
// Nothing is known about what has no name.
struct { 1: i32 a }
struct User { 1: Nameless a, 2: Nameless.Too b, 3: keyword.Nameless c, 4: elsewhere.X d, 5: i32 a }
