namespace go nested.common

struct Base {
  1: string caller
  2: optional map<string, string> extra
}

typedef Base Origin

/** Its JSON is not what encoding/json makes of it, which must not be that of who embeds it. */
struct Keyed {
  1: map<bool, i32> counts
  2: map<binary, string> names
}
