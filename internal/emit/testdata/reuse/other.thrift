namespace go reuse.other

struct Place {
  1: string name
  2: list<double> position
  3: i32 floor = 1
}
