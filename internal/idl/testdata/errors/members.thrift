// Mistakes in members: each costs one message, and the next member is read.
struct Fields {
  1 i32 noColon
  2: i32
  3: i32 a.b
  4: required optional i32 twice
  5: struct wrong
  6: list i32 noAngle
  7: map<string> oneType
  8: list<string unclosed
  9: slist old
  10: void nothing
  11: i32 default =
  12: i32 value = {1 2}
  13: i32 annotated (key =)
  14: i32 annotated (= "x")
  15: i32 fine,
  = 16
  17: list<i32,> comma
  18: i32 last = [1,,2];;
}

enum Values {
  A = "text",
  B = 1.5,
  C.D,
  = 3,
  E = 5
}

service Methods {
  void noArguments
  i32 noName (),
  i32 (1: i32 a),
  void unclosedArgument(1: i32 a
  void throwsNothing() throws,
  void throwsList() throws (1: i32 a;
  oneway void fine()
}
