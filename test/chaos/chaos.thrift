namespace go chaosapi

// Request is a call that stands in the ledger.
struct Request {
  // id is no other call's.
  1: i64 id
  // deadline is when its caller gives up, in nanoseconds since 1970; 0 for never.
  2: i64 deadline
  // burn is how many microseconds of a processor the handler takes, nap how many
  // it waits.
  3: i32 burn
  4: i32 nap
  // payload comes back, behind so many zeros.
  5: binary payload
  6: i32 zeros
}

struct Reply {
  1: i64 id
  2: binary payload
}

// Node nests as deep as somebody makes it.
struct Node {
  1: optional Node next
  2: optional list<string> names
  3: optional map<string, string> pairs
}

service Chaos {
  Reply call(1: Request request)
  // tell is call for who waits for no reply.
  oneway void tell(1: Request request)
  Node nest(1: Node node)
  // peak is how many calls ran at most at a time, of call and tell.
  i64 peak()
  // misbehave ends in some way that it should not.
  void misbehave(1: string how)
}
