/**
 * What a definition says, for code that does not know it: reflection, gateways,
 * calls without generated types. fulmar gen writes a Definition as a message in
 * Thrift Binary into the code of each file, without fields that hold nothing.
 *
 * Comments, constants and the names of Go are not in it. Fields are in the order of
 * the definition, which is that of the Go struct.
 */
namespace go descriptor

/** (key = "value"), "1" if there is no value. */
struct Annotation {
  1: string key
  2: string value
}

/** What a Type is, with typedefs looked through. */
enum Kind {
  VOID = 0
  BOOL = 1
  I8 = 2
  I16 = 3
  I32 = 4
  I64 = 5
  DOUBLE = 6
  STRING = 7
  BINARY = 8
  UUID = 9
  ENUM = 10
  STRUCT = 11
  LIST = 12
  SET = 13
  MAP = 14
}

struct Type {
  1: Kind kind
  /** Of a map. */
  2: Type key
  /** Of a list, a set, or the values of a map. */
  3: Type element
  /** Of an enum or struct. Unions and exceptions are structs. */
  4: string name
  /** Where that is declared: 0 is this file, 1 the first of File.Imports. */
  5: i32 file
  /** What the definition wrote, if that is the name of a typedef. */
  6: string typedef
  7: list<Annotation> annotations
}

struct Typedef {
  1: string name
  2: Type type
  3: list<Annotation> annotations
}

struct EnumValue {
  1: string name
  2: i32 number
  3: list<Annotation> annotations
}

struct Enum {
  1: string name
  2: list<EnumValue> values
  3: list<Annotation> annotations
}

enum Requiredness {
  DEFAULT = 0
  REQUIRED = 1
  OPTIONAL = 2
}

struct Field {
  1: i16 id
  2: string name
  3: Type type
  4: Requiredness requiredness
  /**
   * The default as the field would hold it on the wire, without a header; absent if
   * there is none. Of structs it has the fields that the definition gives.
   */
  5: optional binary value
  6: list<Annotation> annotations
}

enum Category {
  STRUCT = 0
  UNION = 1
  EXCEPTION = 2
}

struct Struct {
  1: string name
  2: Category category
  3: list<Field> fields
  4: list<Annotation> annotations
}

struct Method {
  1: string name
  2: bool oneway
  3: Type result
  4: list<Field> arguments
  5: list<Field> exceptions
  6: list<Annotation> annotations
}

struct Service {
  1: string name
  /** The service that this one extends, "" if none. */
  2: string parent
  /** Where that is declared, as in Type. */
  3: i32 parentFile
  4: list<Method> methods
  5: list<Annotation> annotations
}

/** A file. */
struct Definition {
  /** Without its folder: orders.thrift. */
  1: required string name
  /** By language. */
  2: map<string, string> namespaces
  3: list<Typedef> typedefs
  4: list<Enum> enums
  /** Unions and exceptions too, in the order of the file. */
  5: list<Struct> structs
  6: list<Service> services
}
