namespace go audit

/** What is known about trades. */
struct Report {
  1: i32 trades
  2: i64 cents
}

/** Beside Quotes, on the same port. */
service Audit {
  Report report()
}
