// Methods that take and return views.
namespace go viewmethods

include "parcel.thrift"

struct Order {
  1: i64 id
  2: string region
  3: list<parcel.Parcel> parcels
  4: optional binary image
}

union Choice {
  1: i64 id
  2: string name
}

exception Closed {
  1: string until
}

service Gate extends parcel.Depot {
  /** Everything is a view. */
  Order pass(1: Order order) throws (1: Closed closed)
  Order take(1: Order order) (go.views = "request")
  Order give(1: i64 id) throws (1: Closed closed) (go.views = "response")
  Order plain(1: Order order) (go.views = "none")
  /** Structs are views, and all else is what it always is. */
  void store(1: string key, 2: Order order, 3: list<Order> more, 4: Order preset = {"id": 7}, 5: required Choice choice)
  oneway void seen(1: Order order)
  string name(1: Choice choice)
  list<Order> all()
  /** The view is the handler's until it returns. */
  Order lend(1: Order order, 2: string key) throws (1: Closed closed) (go.strings = "scoped")
} (go.views = "both")
