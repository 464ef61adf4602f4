namespace go inner

struct Base {
  1: string caller
  2: optional map<string, string> extra
}

typedef Base Origin
