// A forgotten bracket is reported where the next declaration shows it.
struct First {
  1: i32 a

enum Second {
  A

service Third {
  void method(1: i32 a

typedef list<map<i32,
typedef i32 Fine

const list<i32> VALUES = [1, 2
const i32 LAST = 1

struct End {
  1: i32 a
