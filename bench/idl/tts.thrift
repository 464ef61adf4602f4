/**
 * What the suite stream calls over TTHeader, for contestants that have streams of
 * Thrift messages.
 */
namespace go tts

struct Message {
  1: string action
  2: string msg
}

service Streams {
  /** Answers each message as it comes. */
  Message bidi(1: Message message) (streaming.mode = "bidirectional")
}
