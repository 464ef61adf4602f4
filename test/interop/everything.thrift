/**
 * Every type and every shape of method that Thrift has and both Python peers
 * can speak. The comment of a method is what each server has to do; cases.json
 * holds arguments and the replies that follow.
 */
namespace go everything
namespace py everything

include "base.thrift"

typedef string Word
typedef list<Word> Words
typedef map<Word, i32> Counts

const i32 ANSWER = 42
const string GREETING = "grüß dich"
const double RATIO = 0.25
const bool ENABLED = true
const list<i32> PRIMES = [2, 3, 5, 7]
const map<string, i32> SIZES = {"small": 1, "large": 100}
const set<string> TAGS = ["one"]

enum Color {
  RED = 0
  GREEN = 1
  BLUE = 7
  NEGATIVE = -3
}

/** Every base type in each of the three forms. */
struct Scalars {
  1: bool flag
  2: i8 tiny
  3: i16 small
  4: i32 medium
  5: i64 large
  6: double ratio
  7: string text
  8: binary bytes
  9: Color color
  10: base.Level level
  11: Word word
  21: required bool requiredFlag
  22: required i8 requiredTiny
  23: required i16 requiredSmall
  24: required i32 requiredMedium
  25: required i64 requiredLarge
  26: required double requiredRatio
  27: required string requiredText
  28: required binary requiredBytes
  29: required Color requiredColor
  41: optional bool optionalFlag
  42: optional i8 optionalTiny
  43: optional i16 optionalSmall
  44: optional i32 optionalMedium
  45: optional i64 optionalLarge
  46: optional double optionalRatio
  47: optional string optionalText
  48: optional binary optionalBytes
  49: optional Color optionalColor
}

/** What a peer has that nobody told anything. */
struct Defaults {
  1: bool flag = true
  2: i8 tiny = -8
  3: i16 small = -300
  4: i32 medium = ANSWER
  5: i64 large = 5000000000
  6: double ratio = 1.5
  7: string text = GREETING
  8: Color color = Color.BLUE
  9: list<i32> numbers = [1, 2, 3]
  10: set<i32> unique = [9]
  11: map<string, i32> sizes = {"a": 1}
  12: list<string> empty = []
  13: required string requiredText = "needed"
  14: optional i32 optionalMedium = 77
  15: optional string optionalText = "perhaps"
  16: optional Color optionalColor = Color.GREEN
  17: base.Level level = base.Level.MIDDLE
}

/** Two fields that must be there. */
struct Strict {
  1: required i32 id
  2: required string name
}

/** Containers of scalars, of structs and of containers. */
struct Containers {
  1: list<bool> flags
  2: list<i8> tinies
  3: list<i16> smalls
  4: list<i32> mediums
  5: list<i64> larges
  6: list<double> ratios
  7: list<string> texts
  8: list<binary> blobs
  9: list<Color> colors
  10: set<i32> uniqueNumbers
  11: set<string> uniqueTexts
  12: set<base.Point> uniquePoints
  13: map<bool, string> byFlag
  14: map<i8, i16> byTiny
  15: map<i16, i8> bySmall
  16: map<i32, double> byMedium
  17: map<i64, bool> byLarge
  18: map<string, binary> byText
  19: map<Color, base.Level> byColor
  20: map<binary, i32> byBytes
  21: map<base.Point, string> byPoint
  22: list<base.Point> points
  23: map<string, Strict> strictByName
  24: list<list<i32>> matrix
  25: list<map<string, set<i32>>> mixed
  26: map<string, list<map<i32, base.Point>>> deep
  27: map<i32, map<i32, map<i32, string>>> cube
  28: optional list<i32> optionalList
  29: optional set<string> optionalSet
  30: optional map<string, string> optionalMap
  31: map<double, i32> byRatio
}

struct Circle {
  1: base.Point center
  2: double radius
}

struct Square {
  1: base.Point corner
  2: double side
}

/** Exactly one of these. */
union Shape {
  1: Circle circle
  2: Square square
  3: string name
  4: i64 number
  5: list<base.Point> polygon
  6: bool nothing
}

/** A struct of structs. */
struct Drawing {
  1: required string title
  2: Shape main
  3: list<Shape> shapes
  4: map<string, Shape> named
  5: optional Shape background
  6: optional Circle outline
  7: Circle inner
}

/** A tree: a struct that holds itself in a list, in a map and optionally. */
struct Tree {
  1: i32 value
  2: list<Tree> children
  3: optional Tree rest
  4: map<string, Tree> named
}

struct Nothing {
}

exception Rejected {
  1: string reason
  2: i32 code
  3: list<string> details
  4: optional base.Point where
}

enum Failure {
  NONE = 0
  NOT_FOUND = 1
  REJECTED = 2
  /** The handler fails with something that the method does not declare. */
  UNDECLARED = 3
}

/** Ways to answer wrongly that a client has to notice. */
enum Misbehaviour {
  NONE = 0
  WRONG_SEQUENCE_ID = 1
  WRONG_METHOD_NAME = 2
  WRONG_MESSAGE_TYPE = 3
  EMPTY_RESULT = 4
  HANG_UP = 5
}

service Everything extends base.Base {
  bool invert(1: bool value)

  /** Returns every bit flipped, which is -1 - value. The same below. */
  i8 flipI8(1: i8 value)
  i16 flipI16(1: i16 value)
  i32 flipI32(1: i32 value)
  i64 flipI64(1: i64 value)

  /** Returns the value with the other sign. */
  double negate(1: double value)

  /** Returns text as often as count says, nothing in between. */
  string repeatText(1: string text, 2: i32 count)

  /** Returns every bit flipped. */
  binary flipBytes(1: binary value)

  /** Returns the color with the number one higher, whether that has a name or not. */
  Color nextColor(1: Color color)

  /** Returns what it was given; the same for all methods that begin with "echo". */
  Scalars echoScalars(1: Scalars value)
  Containers echoContainers(1: Containers value)
  Defaults echoDefaults(1: Defaults value)
  Drawing echoDrawing(1: Drawing value)
  Tree echoTree(1: Tree value)
  Nothing echoNothing(1: Nothing value)
  Words echoWords(1: Words value)
  list<i64> echoNumbers(1: list<i64> value)

  /** Returns a new struct that nothing was done to. */
  Defaults freshDefaults()

  /** Multiplies radius or side by factor; other shapes stay as they are. */
  Shape scale(1: Shape shape, 2: double factor)

  /** Adds up the values of all nodes. */
  i64 sumTree(1: Tree tree)

  /** Counts how often each word occurs. */
  Counts countWords(1: Words words)

  /** Returns the points that occur, each once. */
  set<base.Point> uniquePoints(1: list<base.Point> points)

  /** Returns "x:y" by point. */
  map<base.Point, string> labelPoints(1: set<base.Point> points)

  /** Returns the lengths by blob. */
  map<binary, i32> measure(1: list<binary> blobs)

  /** Returns one list a row: row r holds r times columns + c for each column c. */
  list<list<i32>> grid(1: i32 rows, 2: i32 columns)

  /** Joins first, third (true as "yes", false as "no") and fifth with "/"; ids are neither in order nor without gaps. */
  string joinArguments(5: string fifth, 1: i32 first, 3: list<bool> third)

  /** Returns "id:name". */
  string describeStrict(1: Strict value)

  /** Returns subject in capitals with "!" behind it, or fails as told with what = subject, or reason = subject, code = 409. */
  string fail(1: Failure failure, 2: string subject) throws (1: base.NotFound notFound, 2: Rejected rejected)

  /** The same without a result. */
  void failVoid(1: Failure failure, 2: string subject) throws (1: base.NotFound notFound, 2: Rejected rejected)

  /** Fails as told although it declares nothing. */
  i32 failUndeclared(1: Failure failure)

  /** Appends text to the notes about topic. */
  oneway void note(1: string topic, 2: string text)

  /** A oneway method that always fails; nobody hears of it. */
  oneway void failQuietly(1: string topic)

  /** Returns the notes about topic in the order in which they arrived. */
  list<string> notes(1: string topic)

  /** Waits that long and returns it. */
  i32 pause(1: i32 milliseconds)

  /** Returns 1; the servers of the Python peers answer wrongly first, below the handler, if told to. */
  i32 misbehave(1: Misbehaviour kind)
}
