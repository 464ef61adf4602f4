/** What the demo of service governance serves. */
namespace go stock

struct Answer {
  1: i32 left
  /** The process that answered. */
  2: string server
}

service Stock {
  Answer left(1: string sku)
}
