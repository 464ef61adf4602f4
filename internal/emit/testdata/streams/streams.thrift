namespace go streams

struct Point { 1: i32 x, 2: i32 y = 7 }

struct Line { 1: list<Point> points, 2: optional string name }

service Base {
  // A method of a parent streams as well.
  Line ticks(1: Point from) (streaming.mode = "server")
}

service Canvas extends Base {
  Line unary(1: Point from)

  // All points of a line, one after the other.
  Point walk(1: Line line) (streaming.mode = "server")

  Line draw(1: Point point) (streaming.mode = "client", deprecated)

  Line sketch(1: Point stream) (streaming.mode = "bidirectional")

  Line plain(1: Point point) (streaming.mode = "unary")
}
