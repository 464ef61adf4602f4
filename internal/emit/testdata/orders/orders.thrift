/**
 * A shop.
 */
namespace go orders

/** What became of an order. */
enum Status {
  NEW = 1
  /** The money has arrived. */
  PAID
  CANCELLED = 9
  /** An older name. */
  VOID = 9 (deprecated = "use CANCELLED.")
}

typedef i64 OrderId

/** An article and how often it is wanted. */
struct Item {
  1: required string sku
  2: i32 quantity = 1
  3: optional string note
}

struct PlaceRequest {
  /** Who orders. */
  1: required string customer
  2: list<Item> items
  3: optional map<string, string> labels
}

struct Order {
  1: required OrderId id
  2: Status status = Status.NEW
  3: list<Item> items
  4: map<string, i64> totals
  5: optional Item gift
}

/** Not enough is left. */
exception OutOfStock {
  1: string sku
  2: i32 left
}

exception Forbidden {
}

/** Takes orders and remembers them. */
service Orders {
  /** Places an order. */
  Order place(1: PlaceRequest request) throws (1: OutOfStock outOfStock, 2: Forbidden forbidden)
  /** Says that somebody looked at an order. */
  oneway void viewed(1: OrderId orderId)
  i64 count(1: Status status, 2: set<string> skus)
  list<Order> all()
  void cancel(1: OrderId id, 2: string reason = "unknown") throws (1: Forbidden forbidden)
  void ping()
  void touch() (deprecated)
  Status statusOf(1: OrderId id)
  binary invoice(1: OrderId id)
}
