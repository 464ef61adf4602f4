/** Generated with enums as text. */
namespace go enumtext

enum Color { RED = 1, GREEN, CRIMSON = 1 }
enum Nothing {}

struct Paint {
  1: Color color
  2: optional Color under
  3: list<Color> layers
  4: map<Color, Nothing> names
  5: map<bool, Color> flags
}
