/** What a gateway and the shops behind it agree on. */
namespace go orders

struct Line {
  1: required string sku
  2: i32 quantity
  3: i64 cents
}

struct Order {
  1: required i64 id
  /** Which shop delivers: "eu", or anything else for the other one. */
  2: string region
  3: list<Line> lines
  /** Who orders. The gateway writes it, whatever the caller says. */
  4: optional string tenant
  5: map<string, string> wishes
}

struct Receipt {
  1: required i64 id
  2: string shop
  3: string tenant
  4: i64 cents
  5: list<Line> lines
}

exception Refused {
  1: string reason
}

service Orders {
  Receipt place(1: Order order) throws (1: Refused refused)
}
