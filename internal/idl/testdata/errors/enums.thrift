enum Range {
  A = 2147483647
  B
  C = 2147483648
  D = -2147483649
  E = -2147483648
}
enum Numbers {
  A = 1
  B = 1
  C = 0
  D
}
