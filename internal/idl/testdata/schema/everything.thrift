# load: everything.thrift -I vendor -negative
-- everything.thrift --
/**
 * Every feature of the language.
 */

namespace go acme.everything
namespace * ignored.because.of.go
namespace py.twisted acme.everything (quality = "x")
namespace js "@acme/everything"

include "sub/base.thrift"
include 'vendored.thrift';
cpp_include "<vector>"
xsd_namespace "http://example.com/everything"

// Detached: a blank line follows.

// The largest order
// that is accepted.
const i32 ORDER_MAX = 0x10
const i64 NEGATIVE_HEX = -0x0001F;
const i32 OCTAL = 0o17,
const byte BYTE = -128
const i8 PLUS = +5
const i16 FORWARD = LATER
const i16 LATER = 7
const i32 ACROSS_FILES = base.LIMIT
const i32 THROUGH = ACROSS_FILES
const double NUMBER = 3
const double EXPONENT = -1.5e-3
const double POINT = .5
const double OF_INTEGER = ORDER_MAX
const bool YES = true
const bool ONE = 1
const string TEXT = "a \"quoted\" \\ text\twith 'escapes'\n\u00e9\u20ac\ud83d\ude00\x41"
const string SINGLE = 'say "hi" it\'s fine'
const binary BYTES = "\xff\x00"
const uuid IDENTITY = '{00112233-4455-6677-8899-AABBCCDDEEFF}'
const Status BY_NAME = Status.SHIPPED
const Status BY_NUMBER = 6
const Status UNNAMED = 77
const base.Color FOREIGN = base.Color.GREEN
const Alias THROUGH_TYPEDEF = Alias.NEW
const i32 ENUM_AS_NUMBER = Status.SHIPPED
const i32 OWN_FILE = everything.ORDER_MAX
const list<double> NUMBERS = [1, 2.5; ORDER_MAX 4]
const set<string> WORDS = ["a", "b", "a"]
const map<string, list<i32>> NESTED = {"primes": [2, 3, 5], 'none': []; "named": SMALL}
const list<i32> SMALL = [1]
const Point ORIGIN = {"x": 0, "y": 0}
const map<Point, string> BY_POINT = {{"x": 1, "y": 2}: "near"}
const list<Point> POINTS = [ORIGIN, {"y": 1, "x": -1}]
const Choice CHOSEN = {"text": "yes"}
const map<i32, i32> EMPTY = {} (note = "annotated")

/// Identifies an order.
typedef i64 (js.type = "Long") OrderID (go.name = "OrderNumber")
typedef list<map<OrderID, set<Words>>> Deep
typedef set<string> Words
typedef Status Alias
typedef OrderID Chained
typedef Order OrderAlias

senum Legacy { "one", "two"; "three" } (old)

# What becomes of an order.
enum Status {
  NEW               // just arrived
  SHIPPED = 5,      /** on its way */
  /** Two lines
    * about it. */
  LOST (deprecated, severity = "high");
  AGAIN = 5
  NEGATIVE = -0x2
  struct = 9
} (go.type = "int")

struct Point { 1: required i32 x; 2: required i32 y }

/** An order.
 *
 *   indented();
 */
struct Order xsd_all {
  /** The id. */
  1: required OrderID id
  /* not documentation */
  2: optional string note = TEXT, // about it
  -3: i32 (unit = "g") weight = 100 (min = "1", max = "5", min = "2") ;
  0x10: base.Money total = {"amount": ORDER_MAX}
  17: Order & parent
  18: list<Order> children = []
  19: map cpp_type "std::map" <string, set<i8>> tags
  20: list<string> cpp_type "std::list" names
  21: set cpp_type "x" <binary> (note) blobs = ["\x00"]
  22: optional bool list xsd_optional xsd_nillable xsd_attrs { 1: string inner }
  23: double required = 1
  24: uuid struct
  25: Status status = Status.NEW, 26: Deep deep
  27: optional Chained chained = 9223372036854775807
  28: Seller vendor
  29: Legacy legacy = "one"
}

typedef vendored.Vendor Seller

union Choice {
  1: i32 number
  2: optional string text = "default"
  3: Order order
} (final)

exception OutOfStock { 1: i32 left, 2: string message } (message = "message")
exception Empty {}

service Parent extends base.Ping {
  void nothing(),
}

/** Orders. */
service Orders extends Parent {
  /** Places an order. */
  Order place(1: Order order, 2: i32 count = 1 (min = "1")) throws (1: OutOfStock outOfStock; 2: Empty empty) (retry = "no"),
  oneway void forget(1: OrderID id);
  async void forgetToo(1: OrderID id)
  map<OrderID, list<Order>> all() // every one
  i32 service(1: required i32 include, 2: optional Choice choice)
} (deprecated = "use Orders2")
-- sub/base.thrift --
/** Shared types. */
namespace * acme.base
include "common.thrift"
const i32 LIMIT = 42
struct Money { 1: required i64 amount, 2: common.Currency currency = common.Currency.EUR }
enum Color { RED, GREEN }
service Ping { void ping(1: Money money) throws (1: common.Broken broken) }
-- sub/common.thrift --
enum Currency { EUR = 978 }
exception Broken { 1: string why }
-- vendor/vendored.thrift --
namespace go acme.everything
struct Vendor { 1: string name }
