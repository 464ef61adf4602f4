struct Unknown {
  1: Nothing a
  2: list<Nothing> b
  3: map<Nothing, other.Nothing> c
  4: S service
  5: LIMIT constant
  6: types.Order wrongName
}
service S {}
const i32 LIMIT = 1
const Nothing VALUE = {"a": 1}
typedef Nothing Alias
struct UsesAlias { 1: Alias a = 1 }
