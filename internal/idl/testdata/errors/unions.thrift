union Payment {
  1: required i32 card
  2: optional i32 cash = 1
  3: i32 voucher = 2
  4: i32 coins = 3
}
union Empty {}
