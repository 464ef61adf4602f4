# load: main.thrift -implicit=thriftgo -negative
struct Mixed { i32 a, 5: i32 b, i32 c, 7: i32 d, 6: i32 taken, i32 takenToo }
struct Full { 32767: i32 a, i32 b, i32 c }
exception Problem {}
service Methods {
  void fine(i32 a, i32 b) throws (Problem p)
  void result() throws (-1: Problem p, Problem q)
}
