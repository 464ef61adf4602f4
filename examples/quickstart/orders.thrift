namespace go orders

struct PlaceRequest {
  1: required string sku
  2: required i32 quantity
}

struct Order {
  1: i64 id
  2: string sku
  3: i32 quantity
}

exception OutOfStock {
  1: string sku
  2: i32 left
}

service Orders {
  Order place(1: PlaceRequest request) throws (1: OutOfStock outOfStock)
  oneway void viewed(1: i64 orderId)
}
