namespace go inherit.value

enum Kind { A, B }
enum Level { LOW = 1, HIGH = 2 }
struct Key { 1: i32 a, 2: optional string b }
struct Value { 1: Kind kind, 2: i64 n }
struct Inner { 1: i32 n = 4, 2: Kind kind = Kind.B }
