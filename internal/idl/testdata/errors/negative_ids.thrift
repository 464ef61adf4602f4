# load: main.thrift -negative
struct Fine {
  -1: i32 a
  0: i32 b
}
exception Problem {}
service Methods {
  void m(-1: i32 a, 0: i32 b) throws (-1: Problem fine, 0: Problem result)
}
