namespace go recursion

/** Contains itself by value. */
struct Node {
  1: i32 value
  2: Node next
  3: list<Node> children
  4: map<string, Node> named
  5: optional Node twin
}

/** A cycle of three; the field that closes it is C.a. */
struct A { 1: B b, 2: i32 depth = 1 }
struct B { 1: C c }
struct C { 1: A a, 2: required Leaf leaf }
struct Leaf { 1: string name }

typedef Tree Subtree
struct Tree { 1: Subtree left, 2: Subtree right, 3: optional i32 weight }

union Expression {
  1: i64 number
  2: Sum sum
  3: Expression negated
}
struct Sum { 1: required list<Expression> terms }

/** A required field closes the cycle, but the list can be empty. */
struct Outer { 1: Inner inner }
struct Inner { 1: required Outer outer, 2: optional i32 n }

struct Keyed { 1: map<Keyed, i32> weights, 2: map<list<Keyed>, Keyed> more }

exception Caused { 1: string message, 2: optional Caused cause }
