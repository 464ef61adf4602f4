namespace go rooms

struct BookRequest {
  1: required string room (validate.pattern = "^[A-Z][0-9]+$")
  2: i32 people (validate.min = "1", validate.max = "12")
  3: optional string note (validate.max_length = "200")
}

struct Booking {
  1: i64 number
  2: string room
}

exception Taken {
  1: string room
}

service Rooms {
  Booking book(1: BookRequest request) throws (1: Taken taken)
  void cancel(1: i64 number (validate.min = "1"))
}
