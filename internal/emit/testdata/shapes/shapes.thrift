namespace go shapes

enum Color { RED, GREEN, BLUE }

typedef binary Blob
typedef list<Point> Path
typedef map<Point, Color> Painting
typedef Color Colour

struct Point {
  1: i32 x
  2: i32 y
  3: optional string label
}

/** Every type without a requiredness. */
struct Plain {
  1: bool aBool
  2: i8 anI8
  3: i16 anI16
  4: i32 anI32
  5: i64 anI64
  6: double aDouble
  7: string aString
  8: binary aBinary
  9: uuid aUuid
  10: Color anEnum
  11: Point aStruct
  12: list<i32> aList
  13: set<string> aSet
  14: map<string, i64> aMap
  15: Shape aUnion
  16: Failure anException
  17: Blob aBlob
}

struct Optional {
  1: optional bool aBool
  2: optional i8 anI8
  3: optional i16 anI16
  4: optional i32 anI32
  5: optional i64 anI64
  6: optional double aDouble
  7: optional string aString
  8: optional binary aBinary
  9: optional uuid aUuid
  10: optional Colour anEnum
  11: optional Point aStruct
  12: optional list<i32> aList
  13: optional set<string> aSet
  14: optional map<string, i64> aMap
  15: optional Shape aUnion
  16: optional Failure anException
  17: optional Blob aBlob
}

struct Required {
  1: required bool aBool
  2: required i8 anI8
  3: required i16 anI16
  4: required i32 anI32
  5: required i64 anI64
  6: required double aDouble
  7: required string aString
  8: required binary aBinary
  9: required uuid aUuid
  10: required Color anEnum
  11: required Point aStruct
  12: required list<i32> aList
  13: required set<string> aSet
  14: required map<string, i64> aMap
  15: required Shape aUnion
  16: required Failure anException
  17: required Blob aBlob
}

union Shape {
  1: bool aBool
  2: i8 anI8
  3: i16 anI16
  4: i32 anI32
  5: i64 anI64
  6: double aDouble
  7: string aString
  8: binary aBinary
  9: uuid aUuid
  10: Color anEnum
  11: Point aStruct
  12: list<i32> aList
  13: set<string> aSet
  14: map<string, i64> aMap
  15: Shape aUnion
  16: Failure anException
  17: map<list<i32>, Point> pairs
}

exception Failure {
  1: i32 code
  2: optional string reason
  3: binary dump
}

struct Containers {
  1: list<bool> bools
  2: list<i8> bytes
  3: list<double> doubles
  4: list<Blob> blobs
  5: list<uuid> uuids
  6: set<Color> colors
  7: list<Point> points
  8: list<Shape> shapes
  9: list<list<list<i64>>> cube
  10: list<map<string, list<Point>>> mixed
  11: map<i16, map<i64, set<double>>> maps
  12: Path path
  13: list<Path> paths
}

struct Keys {
  1: map<bool, string> bools
  2: map<i8, i8> bytes
  3: map<double, string> doubles
  4: map<Blob, string> blobs
  5: map<uuid, uuid> uuids
  6: map<Color, Color> colors
  7: Painting painting
  8: map<list<i32>, string> lists
  9: map<set<string>, list<Point>> sets
  10: map<map<string, i32>, map<list<string>, Point>> maps
  11: map<Plain, Point> structs
  12: map<i64, map<Point, list<Point>>> nested
  13: optional map<list<i32>, i32> maybe
  14: required map<Blob, list<Blob>> must
}

/** More required fields than a machine word has bits. */
struct Wide {
  1: required i8 f1, 2: required i8 f2, 3: required i8 f3, 4: required i8 f4, 5: required i8 f5
  6: required i8 f6, 7: required i8 f7, 8: required i8 f8, 9: required i8 f9, 10: required i8 f10
  11: required i8 f11, 12: required i8 f12, 13: required i8 f13, 14: required i8 f14, 15: required i8 f15
  16: required i8 f16, 17: required i8 f17, 18: required i8 f18, 19: required i8 f19, 20: required i8 f20
  21: required i8 f21, 22: required i8 f22, 23: required i8 f23, 24: required i8 f24, 25: required i8 f25
  26: required i8 f26, 27: required i8 f27, 28: required i8 f28, 29: required i8 f29, 30: required i8 f30
  31: required i8 f31, 32: required i8 f32, 33: required i8 f33, 34: required i8 f34, 35: required i8 f35
  36: required i8 f36, 37: required i8 f37, 38: required i8 f38, 39: required i8 f39, 40: required i8 f40
  41: required i8 f41, 42: required i8 f42, 43: required i8 f43, 44: required i8 f44, 45: required i8 f45
  46: required i8 f46, 47: required i8 f47, 48: required i8 f48, 49: required i8 f49, 50: required i8 f50
  51: required i8 f51, 52: required i8 f52, 53: required i8 f53, 54: required i8 f54, 55: required i8 f55
  56: required i8 f56, 57: required i8 f57, 58: required i8 f58, 59: required i8 f59, 60: required i8 f60
  61: required i8 f61, 62: required i8 f62, 63: required i8 f63, 64: required i8 f64, 65: required i8 f65
  66: i8 f66
}

struct Empty {}

service Echo {
  bool aBool(1: bool v)
  i8 anI8(1: i8 v)
  double aDouble(1: double v)
  string aString(1: string v)
  binary aBinary(1: Blob v)
  uuid aUuid(1: uuid v)
  Colour anEnum(1: Colour v)
  Point aStruct(1: Point v)
  Path aList(1: Path v)
  set<string> aSet(1: set<string> v)
  Painting aMap(1: Painting v)
  map<list<i32>, string> pairs(1: map<list<i32>, string> v)
  Shape aUnion(1: Shape v)
  Failure anException(1: required Failure v)
}
