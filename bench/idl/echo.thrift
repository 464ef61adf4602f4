/**
 * What the suite rpc calls, for every contestant that speaks Thrift. The struct
 * Complex has the shape of EchoComplex in Kitex's own benchmark: text, a map, a
 * list and a set of structs, and structs inside of structs. echo.proto is the
 * same for those that speak Protobuf.
 */
namespace go echo

struct Message {
  1: string action
  2: string msg
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

struct Complex {
  1: required string action
  2: required string msg
  3: required map<string, Part> byName
  4: required list<Part> parts
  5: optional set<Group> groups
  6: required Group flag
}

service Echo {
  /** Answers with a new struct of the same content, as complex does. */
  Message echo(1: Message message)
  Complex complex(1: Complex message)
  /** The server compares the message with what it expects, and counts it. */
  oneway void notify(1: Message message)
}
