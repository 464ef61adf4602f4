exception Problem {}
struct Order {}
enum Status { NEW }
typedef Problem Alias

service A extends B { void a() }
service B extends C { void b() }
service C extends A { void c() }
service D extends D {}
service HangsOn extends A { void a() }
service E extends Nothing {}
service F extends Order {}
service G extends other.H {}

service Parent { void same(), void other() }
service Child extends Parent {}
service GrandChild extends Child { void same(), void mine() }

service Rules {
  oneway i32 returns(1: i32 a)
  oneway void throwing() throws (1: Problem p)
  async void old()
  void throwsWrong() throws (1: Order o, 2: Status s, 3: i32 i, 4: list<Problem> l, 5: Alias fine, 6: Nothing n)
  void optionalArgument(1: optional i32 a, 2: required i32 b)
  Nothing result()
}
