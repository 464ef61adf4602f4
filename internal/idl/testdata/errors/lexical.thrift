// Characters and literals that nothing can be made of.
namespace go lexical

struct Price € {
  1: i32 a
}
struct At { 1: i32 a @ b
  2: i32 @c
  ../x }
const i32 BAD_NUMBER = 12abc
const i32 TWO_POINTS = 1.2.3
const i32 EMPTY_HEX = 0x
const i32 TOO_BIG = 99999999999999999999
const double TOO_BIG_DOUBLE = 1e999
const i32 OCTAL_DIGIT = 0o8
const i32 LEADING_ZERO = 0123
const i32 SIGN = - 1
const string OPEN = "no end
const string OPEN_TOO = 'no end
const string ESCAPE = "\q and \x4 and \u12 and \ud800 and \ud800\u0041"
const string ESCAPE_END = "\
struct AfterAll { 1: i32 fine }
/ slash
/* a comment without an end
struct Lost {}
