const i32 SELF = SELF
const i32 A = B
const i32 B = C
const i32 C = A
const list<i32> LIST = [1, A, LATER]
const map<string, list<list<i32>>> DEEP = {"a": [LIST, DEEP]}
const i32 LATER = 1
struct S { 1: i32 a = SELF }
