/** What the tests of the call path serve and call. */
namespace go testservice

struct Message {
  1: required string text
  2: optional i64 number
  3: list<Message> parts
  4: map<string, string> labels
}

exception Refused {
  1: string reason
  2: i32 limit
}

service Base {
  string version()
}

service Echo extends Base {
  Message echo(1: Message message) throws (1: Refused refused)
  i32 add(1: i32 left, 2: i32 right)
  void nothing()
  oneway void notify(1: string text)
  /** Its request may refer to the memory that it was received in. */
  Message scoped(1: Message message) throws (1: Refused refused) (go.strings = "scoped")
  /** One of its arguments may refer to that memory. */
  string word(1: string word (go.strings = "scoped"), 2: string other)
}

/** Has a method of the same name as Echo. */
service Calculator {
  i32 add(1: i32 left, 2: i32 right)
}

struct Item {
  1: string name
  2: i32 count = 1
}

service Feed {
  Item list(1: Item item) (streaming.mode = "server")
  Item fill(1: Item item) (streaming.mode = "client")
  Item swap(1: Item item) (streaming.mode = "bidirectional")
}
