// Go types that fields ask for with go.type.
namespace go fieldtypes

const i64 HOUR = 3600000000000
const string NOBODY = "nobody"

typedef i64 Nanoseconds

struct Plain {
  1: bool flag (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Flag")
  2: i8 level (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Level")
  3: i16 port (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Port")
  4: i32 cents (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Cents")
  5: Nanoseconds timeout (go.type = "time.Duration")
  6: double celsius (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Celsius")
  7: string name (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Name")
  8: binary key (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Key")
  9: required string again (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Name", go.strings = "own")
}

struct Optional {
  1: optional bool flag (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Flag")
  2: optional i8 level (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Level")
  3: optional i16 port (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Port")
  4: optional i32 cents (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Cents")
  5: optional i64 timeout (go.type = "time.Duration")
  6: optional double celsius (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Celsius")
  7: optional string name (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Name")
  8: optional binary key (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Key")
}

struct Defaults {
  1: bool flag = true (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Flag")
  2: i8 level = 3 (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Level")
  3: i64 timeout = HOUR (go.type = "time.Duration")
  4: double celsius = -0.0 (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Celsius")
  5: string name = NOBODY (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Name")
  6: binary key = "key" (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Key")
  7: optional i64 later = 5 (go.type = "time.Duration")
  8: optional string other = NOBODY (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Name")
  9: optional binary more = "more" (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Key")
}

union Either {
  1: i64 timeout (go.type = "time.Duration")
  2: string name (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Name")
  3: binary key (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Key")
}

struct Point {
  1: i32 x (go.type = "github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/kinds.Cents")
  2: optional i64 age (go.type = "time.Duration")
}

struct Container {
  1: map<Point, Plain> plain
  2: list<Optional> optional
  3: Defaults defaults
  4: optional Container inner
  // The names of packages and of variables get in each other's way.
  5: i64 time (go.type = "time.Duration")
}

// Lists and sets of i8 that are bytes in Go.
typedef list<i8> Octets
const i8 LAST = -1

struct Bytes {
  1: list<i8> plain (go.type = "[]byte")
  2: required set<i8> must (go.type = "[]byte")
  3: optional Octets maybe (go.type = "[]byte")
  4: list<i8> preset = [1, -128, LAST] (go.type = "[]byte")
  5: optional list<byte> later = [LAST] (go.type = "[]byte")
  6: list<i8> numbers
  7: i32 count
}

/** The one of a few fields that are compared by themselves. */
struct Digest {
  1: required list<i8> sum (go.type = "[]byte")
}

union Content {
  1: list<i8> raw (go.type = "[]byte")
  2: string text
}

const Bytes OCTETS = {"must": [0, 127], "maybe": [-2]}

const Optional PRESET = {"timeout": HOUR, "name": "preset", "celsius": 1, "key": "k"}
