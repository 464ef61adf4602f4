/**
 * What the suite codec encodes and decodes, for every contestant that speaks
 * Thrift. codec.proto is the same for those that speak Protobuf. The shapes of
 * several benchmarks are among them; bench/codec/data.go fills them.
 */
namespace go messages

/** Of the benchmarks of Go serialisers: every kind of scalar, 74 bytes. */
struct Tiny {
  1: string name
  2: i64 birthday
  3: string phone
  4: i32 siblings
  5: bool spouse
  6: double money
}

/** Of Kitex's own benchmark: one short and one long text. */
struct Echo {
  1: required string action
  2: required string msg
}

struct Part {
  1: optional i64 number
  2: optional string value
}

struct Group {
  1: optional i64 number
  2: optional string value
  3: optional list<Part> parts
}

/** Of Kitex's own benchmark: text, a map, a list and a set of structs, nested. */
struct Complex {
  1: required string action
  2: required string msg
  3: required map<string, Part> byName
  4: required list<Part> parts
  5: optional set<Group> groups
  6: required Group flag
}

struct Tag {
  1: string key
  2: string val
}

struct SmallItem {
  1: i64 id
  2: string name
  3: i32 kind
  4: double score
  5: bool flag
  6: list<string> labels
  7: Tag tag
  8: list<i64> ids
  9: optional string note
}

/** Many structs and lists of short texts and scalars, without maps. */
struct Small {
  1: string trace
  2: list<SmallItem> items
  3: optional i64 total
}

struct Item {
  1: i64 id
  2: string name
  3: i32 kind
  4: double score
  5: bool flag
  6: list<string> labels
  7: map<string, string> attrs
  8: Tag tag
  9: list<i64> ids
  10: optional string note
}

/** The same with maps of texts and of structs. */
struct Mixed {
  1: string trace
  2: list<Item> items
  3: map<string, Item> index
  4: optional i64 total
}

struct Int64List {
  1: list<i64> values
}

struct Int32List {
  1: list<i32> values
}

struct Ano {
  1: i64 num
}

/** Of the article that compares Thrift with Cap'n Proto: 1 MiB of numbers. */
struct MyTest {
  1: i64 num
  2: Ano ano
  3: list<i64> nums
}
