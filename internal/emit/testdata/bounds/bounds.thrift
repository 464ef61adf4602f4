namespace go bounds

/** What a peer could make large with few bytes, and programs with pointers. */
const list<i64> NUMBERS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]

/** A byte on the wire, small in Go, and large with its defaults. */
struct Preset {
  1: list<i64> numbers = NUMBERS
  2: map<string, i64> sizes = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9}
}

/** Another one, whose defaults are those of a struct in it, and other kinds of them. */
struct Around {
  1: Preset preset
  2: binary blob = "0123456789abcdef0123456789abcdef"
  3: list<list<string>> texts = [["a"], ["b", "c"]]
  4: map<list<i32>, Leaf> pairs = {[1, 2]: {"name": "x"}}
  5: Leaf leaf = {"labels": ["y"]}
}

struct Leaf {
  1: string name = "leaf"
  2: list<string> labels
}

struct Presets {
  1: list<Preset> list
  2: map<i32, Preset> byNumber
  3: map<list<i32>, Preset> pairs
  4: Preset one
  5: optional Preset maybe
  6: list<Around> around
  7: optional Large large
  8: list<Line> lines
  9: list<list<i32>> rows
  10: map<list<i32>, bool> flags
  11: list<binary> blobs
  12: map<i32, Large> largeByNumber
}

/** Without defaults, and long in Go. */
struct Large { 1: Line a, 2: Line b, 3: Line c, 4: Line d, 5: Line e, 6: Line f, 7: Line g, 8: Line h }
struct Line { 1: i64 a, 2: i64 b, 3: i64 c, 4: i64 d, 5: i64 e, 6: i64 f, 7: i64 g, 8: i64 h }

/** Has methods of its own for JSON, and can contain itself. */
struct Switch {
  1: map<bool, Switch> next
  2: optional Switch other
  3: list<Switch> list
  4: string text
  5: map<list<bool>, Switch> pairs
  6: map<bool, list<map<double, Switch>>> deep
}

/** Containers of containers, which a program can let share their elements. */
struct Nested {
  1: list<list<list<list<list<list<i32>>>>>> lists
  2: list<map<i32, list<map<i32, list<list<string>>>>>> maps
  3: map<list<i32>, list<map<list<i32>, list<list<list<i64>>>>>> pairs
}

/** More texts than one expression adds the lengths of. */
struct Texts {
  1: string t1 2: string t2 3: string t3 4: string t4 5: string t5 6: string t6 7: string t7 8: string t8 9: string t9 10: string t10
  11: string t11 12: string t12 13: string t13 14: string t14 15: string t15 16: string t16 17: string t17 18: string t18 19: string t19 20: string t20
  21: string t21 22: string t22 23: string t23 24: string t24 25: string t25 26: string t26 27: string t27 28: string t28 29: string t29 30: string t30
  31: string t31 32: string t32 33: string t33 34: string t34 35: string t35 36: string t36 37: string t37 38: string t38 39: string t39 40: string t40
  41: string t41 42: string t42 43: string t43 44: string t44 45: string t45 46: string t46 47: string t47 48: string t48 49: string t49 50: string t50
  51: string t51 52: string t52 53: string t53 54: string t54 55: string t55 56: string t56 57: string t57 58: string t58 59: string t59 60: string t60
  61: string t61 62: string t62 63: string t63 64: string t64 65: string t65 66: string t66 67: string t67 68: string t68 69: string t69 70: string t70
  71: string t71 72: string t72 73: string t73 74: string t74 75: string t75 76: string t76 77: string t77 78: string t78 79: string t79 80: string t80
  81: string t81 82: string t82 83: string t83 84: string t84 85: string t85 86: string t86 87: string t87 88: string t88 89: string t89 90: string t90
  91: string t91 92: string t92 93: string t93 94: string t94 95: string t95 96: string t96 97: string t97 98: string t98 99: string t99 100: string t100
  101: string t101 102: string t102 103: string t103 104: string t104 105: string t105 106: string t106 107: string t107 108: string t108 109: string t109 110: string t110
  111: string t111 112: string t112 113: string t113 114: string t114 115: string t115 116: string t116 117: string t117 118: string t118 119: string t119 120: string t120
  121: string t121 122: string t122 123: string t123 124: string t124 125: string t125 126: string t126 127: string t127 128: string t128 129: string t129 130: string t130
}
