namespace go views.other

struct Place {
  1: required string name
  2: i32 floor = 1
}
