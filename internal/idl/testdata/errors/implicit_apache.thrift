# load: main.thrift -implicit=apache
struct Mixed { i32 a, 5: i32 b, i32 c, -1: i32 refused }
exception Problem {}
service Methods {
  void fine(i32 a, i32 b) throws (Problem p)
  void unread(i32 a, 3 i32 noColon) throws (Problem p)
}
