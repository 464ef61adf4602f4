struct Missing {
  i32 a
  required i32 b
  1: i32 c
  5: i32 d
}
struct Range {
  1: i32 a
  1: i32 b
  0: i32 zero
  -1: i32 negative
  32768: i32 large
  -32769: i32 small
  32767: i32 fine
  i32 noneLeft
}
exception Problem {}
service Methods {
  void m(i32 a, 1: i32 b) throws (0: Problem zero, Problem missing)
}
