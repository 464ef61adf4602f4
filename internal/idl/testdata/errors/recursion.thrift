struct Self { 1: required Self self }
struct A { 1: i32 x, 2: required B b }
struct B { 1: required C c }
struct C { 1: required A a }
struct HangsOn { 1: required A a }
union OnlySelf { 1: OnlySelf a, 2: OnlySelf b }
union Ends { 1: Ends a, 2: i32 b }
struct ThroughUnion { 1: required OnlyThroughUnion u }
union OnlyThroughUnion { 1: ThroughUnion s }
struct Tree { 1: required list<Tree> children, 2: optional Tree parent, 3: Tree loose }
exception Nested { 1: required Nested cause }
typedef Renamed Alias
struct Renamed { 1: string a, 2: required Alias b }
struct ByDefault { 1: required ByDefault a = {} }
struct Fine { 1: optional Fine a, 2: required list<Fine> b, 3: required map<string, Fine> c, 4: Fine d, 5: required Ends e }
