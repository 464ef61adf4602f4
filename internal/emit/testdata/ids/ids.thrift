namespace go ids

/** Ids where an encoding of them could go wrong. */
struct Extremes {
  -32768: required i32 lowest
  -256: string minus256
  -1: list<i32> minus1
  0: i64 zero
  1: optional bool low
  255: i8 page
  256: i16 afterPage
  32767: required string highest
}

union Either { -1: i32 number, 0: string text }

exception Refused { -2: string reason }

service Negative {
  i32 swap(-1: i32 first, 0: Either second) throws (-1: Refused refused)
}
