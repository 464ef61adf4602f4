// What the streams of streams_role_test.go are, for our generator.
namespace go streamed

struct Note {
  1: string value
}

service Streams {
  Note echo(1: Note note) (streaming.mode = "unary")
  Note chat(1: Note note) (streaming.mode = "bidirectional")
  Note list(1: Note note) (streaming.mode = "server")
  Note collect(1: Note note) (streaming.mode = "client")
  Note fail(1: Note note) (streaming.mode = "bidirectional")
  Note business(1: Note note) (streaming.mode = "bidirectional")
  Note hang(1: Note note) (streaming.mode = "bidirectional")
  Note seen(1: Note note) (streaming.mode = "server")
}
