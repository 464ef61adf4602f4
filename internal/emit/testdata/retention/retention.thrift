// Where strings are kept, by go.strings at fields, methods and services.
namespace go retention

struct Inner {
  1: string text
}

struct Kept {
  1: string shared
  2: string cached (go.strings = "own")
  3: optional string maybe (go.strings = "own")
  4: list<string> tags (go.strings = "own")
  5: map<string, Inner> inner (go.strings = "own")
  6: optional binary blob (go.strings = "message")
  7: Inner plain (go.strings = "auto")
  8: string last
}

union Either {
  1: string text (go.strings = "own")
  2: list<string> texts (go.strings = "own")
}

service Cache {
  void put(1: Kept value (go.strings = "message"))
  Kept get(1: string key) (go.strings = "message")
} (go.strings = "own")

service Plain extends Cache {
  Kept find(1: string key)
}
