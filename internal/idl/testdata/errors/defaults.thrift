struct Self { 1: Self self = {} }
struct A { 1: list<B> list = [{}] }
struct B { 1: map<string, A> byName = {"a": {}} }
struct ThroughField { 1: Inner inner }
struct Inner { 1: ThroughField outer = {} }
struct Fine { 1: optional Fine next = {}, 2: Leaf leaf = {"x": 1} }
struct Leaf { 1: i32 x = 2 }
