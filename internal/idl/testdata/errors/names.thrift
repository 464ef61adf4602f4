struct Twice {}
enum Twice {}
typedef i32 Twice
const i32 Twice = 1
service Twice {}
senum Twice {}

struct Fields {
  1: i32 a
  2: i32 a
}
enum Values { A, A, B }
service Methods {
  void m()
  i32 m(1: i32 a, 2: i32 a) throws (1: Problem b, 2: Problem b)
}
exception Problem {}
