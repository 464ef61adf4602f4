/**
 * What only TTHeader can carry: metadata in both directions, business errors,
 * the time that a call has, and calls that overtake each other on one
 * connection. Kitex and Fulmar speak it; courier.json has the cases.
 */
namespace go courier
namespace py courier

/** What reached a handler beside its arguments. */
struct Received {
  /** For this call and every further one that it causes. */
  1: map<string, string> everyHop
  /** Sent by the caller for this hop only. */
  2: map<string, string> oneHop
}

service Courier {
  /** Returns what arrived, and sends back as metadata of the reply. */
  Received carry(1: map<string, string> back)

  /** Calls carry of the server at host:port within this call, and returns what arrived there. */
  Received relay(1: string address)

  /** Fails with a business error; back are metadata of the reply. */
  string refuse(1: i32 code, 2: string message, 3: map<string, string> extra, 4: map<string, string> back)

  /** The handler panics. */
  i32 crash(1: string reason)

  /** The name that the caller gives itself (TTHeader key 3); empty if it gave none. */
  string caller()

  /** The milliseconds that the caller gave the call (TTHeader key 12); 0 if it did not say. */
  i64 remaining()

  /** Answers true when release is called with the same topic and so many milliseconds have passed, false if that takes 10 seconds. */
  bool hold(1: string topic, 2: i32 milliseconds)

  /** Answers true as soon as hold waits with that topic, false if that takes 10 seconds. */
  bool held(1: string topic)
  void release(1: string topic)

  /** Keeps what arrived, for collect. */
  oneway void leave(1: string topic)

  /** Returns what leave got with that topic, or an empty struct. */
  Received collect(1: string topic)
}
