namespace go audit

/** What is known about trades. */
struct Report {
  1: i32 trades
  2: i64 cents
}

/** How many trades are to be skipped. */
struct Since {
  1: i32 trades
}

/** One trade. */
struct Trade {
  1: i64 cents
}

/** Beside Quotes, on the same port. */
service Audit {
  Report report()
  /** One message for each trade that there was. */
  Trade trades(1: Since since) (streaming.mode = "server")
}
