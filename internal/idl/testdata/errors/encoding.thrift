struct A {
  // café
}
