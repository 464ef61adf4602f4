/**
 * An order service as a small shop would run it: the example that `make demo`
 * generates code from, serves, and calls.
 */
namespace go orders
namespace py orders

/** Identifies an order for ever; numbers are not used again. */
typedef i64 OrderId

/** A currency as ISO 4217 writes it: "EUR", "USD", "GBP", "SEK". */
typedef string Currency

/** An amount of money in the smallest unit of its currency. */
typedef i64 Cents

/** Orders with at least this much in the basket are delivered free of charge. */
const map<Currency, Cents> FREE_SHIPPING_FROM = {"EUR": 5000, "USD": 5500, "GBP": 4500, "SEK": 55000}

/** What delivery costs below FREE_SHIPPING_FROM. */
const map<Currency, Cents> SHIPPING = {"EUR": 490, "USD": 590, "GBP": 390, "SEK": 4900}

/** Prices and shipping include this much tax: total * TAX_PERCENT / (100 + TAX_PERCENT), rounded down. */
const i32 TAX_PERCENT = 19

/** How many orders a search returns at most if the request does not say. */
const i32 SEARCH_LIMIT = 20

/**
 * Key of the persistent metadata with which a caller limits what an order may
 * come to: a decimal number of cents in the currency of the order.
 */
const string CUSTOMER_LIMIT = "CUSTOMER_LIMIT"

/**
 * Key of the reply metadata that says how many cents of the limit are left; all
 * of them if the order was refused.
 */
const string LIMIT_LEFT = "LIMIT_LEFT"

/**
 * Status of the business error "limit reached", whose extra has the limit and
 * the total of the order in cents under these names.
 */
const i32 LIMIT_REACHED = 4001

/** Where an order is on its way. */
enum Status {
  PLACED = 1
  PAID = 2
  SHIPPED = 3
  DELIVERED = 4
  CANCELLED = 5
  RETURNED = 6
}

/** A place that a parcel can go to. */
struct Address {
  1: string street
  2: string postalCode
  3: string city
  /** The country as ISO 3166 writes it with two letters. */
  4: string country
}

/** Somebody who has an account. */
struct Customer {
  1: required i64 id
  2: required string name
  3: string email
  4: Address address
  5: optional string phone
}

/** Something the shop sells. */
struct Product {
  1: required string sku
  2: string title
  3: string category
  /** What one piece costs, by currency. */
  4: map<Currency, Cents> prices
  5: set<string> tags
  6: optional i32 weightGrams
}

/** One article of an order. */
struct Line {
  1: required string sku
  2: required i32 quantity
  /** What one piece cost when the order was placed. */
  3: Cents unitPrice
}

/** What an order comes to. `total` is `items` plus `shipping`; `tax` is the part of `total` that is tax. */
struct Totals {
  1: Cents items
  2: Cents shipping
  3: Cents tax
  4: Cents total
}

struct CardPayment {
  1: string brand
  2: string lastDigits
}

struct InvoicePayment {
  1: i32 dueDays = 14
}

/** How an order is paid: exactly one of these. */
union Payment {
  1: CardPayment card
  2: InvoicePayment invoice
  /** The code of a voucher that covers everything. */
  3: string voucher
}

/** An order as it was placed, with where it is now. */
struct Order {
  1: required OrderId id
  2: required i64 customerId
  3: required Status status = Status.PLACED
  4: required Currency currency
  5: list<Line> lines
  6: Totals totals
  7: Address shipTo
  8: Payment payment
  /** Milliseconds since 1970 in UTC. */
  9: i64 placedAt
  /** When each status was reached, in the unit of placedAt. */
  10: map<Status, i64> history
  /** Wishes such as "gift" or "note", as the customer wrote them. */
  11: map<string, string> wishes
  12: optional string trackingCode
}

struct PlaceRequest {
  1: required i64 customerId
  /** Quantities by SKU. */
  2: map<string, i32> basket
  3: required Payment payment
  4: Currency currency = "EUR"
  /** Where to send it; the address of the customer if absent. */
  5: optional Address shipTo
  6: map<string, string> wishes
}

/** Everything that is set must fit. */
struct SearchRequest {
  1: optional i64 customerId
  2: optional set<Status> statuses
  3: optional string sku
  4: optional i32 limit = SEARCH_LIMIT
}

/** What was sold in one currency. */
struct Turnover {
  1: i32 orders
  2: Totals totals
  /** Pieces sold by SKU. */
  3: map<string, i64> pieces
}

struct StocktakeRequest {
  /** Which articles to count; all of them if empty. */
  1: list<string> skus
  /** How long the people in the warehouse take for one article. */
  2: i32 millisecondsPerArticle = 25
}

struct Stocktake {
  /** Pieces on the shelves by SKU. */
  1: map<string, i32> pieces
  /** Articles with nothing left, in the order of the catalogue. */
  2: list<string> empty
}

/** Fewer pieces are left than were asked for. */
exception OutOfStock {
  1: string sku
  2: i32 left
}

/** The order cannot be accepted as it is, however often it is sent. */
exception InvalidOrder {
  1: string reason
  /** The field that is wrong. */
  2: string field
}

/** There is nothing with that number or name. */
exception NotFound {
  1: string what
}

service Orders {
  /**
   * Takes the pieces from stock and returns the new order with status PLACED.
   * Lines are in the order of the catalogue. Refused are empty baskets,
   * quantities below one, unknown customers, articles and currencies
   * (InvalidOrder), quantities that are not in stock (OutOfStock), and
   * totals above CUSTOMER_LIMIT if that came with the call (business error
   * LIMIT_REACHED); nothing is taken from stock then.
   */
  Order place(1: PlaceRequest request) throws (1: OutOfStock outOfStock, 2: InvalidOrder invalid)

  Order get(1: OrderId id) throws (1: NotFound notFound)

  /** Returns what fits, the highest number first. */
  list<Order> search(1: SearchRequest request)

  /** Adds up all orders but the cancelled and returned ones, by currency. */
  map<Currency, Turnover> turnover()

  /** Returns how many pieces are left. */
  i32 stock(1: string sku) throws (1: NotFound notFound)

  Product product(1: string sku) throws (1: NotFound notFound)

  /** Says that somebody looked at an order; nobody waits for an answer. */
  oneway void viewed(1: OrderId id)

  /** Returns how often an order was looked at. */
  i64 views(1: OrderId id)

  /** Moves an order on; a status only ever goes up. */
  void advance(1: OrderId id, 2: Status status) throws (1: NotFound notFound, 2: InvalidOrder invalid)

  /**
   * Walks to the shelves and counts, which takes its time: give the call a
   * deadline that fits, or ask for fewer articles.
   */
  Stocktake stocktake(1: StocktakeRequest request)
}
