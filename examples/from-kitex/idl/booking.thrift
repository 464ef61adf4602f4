namespace go booking

include "common.thrift"

const i32 MAX_NIGHTS = 28
const i32 PAGE_SIZE = 10
const common.Currency HOUSE_CURRENCY = "EUR"
const map<string, i32> SEASON_PERCENT = {"summer": 120, "winter": 80}

typedef string HotelId
typedef i64 BookingId

enum RoomKind {
  SINGLE = 1
  DOUBLE = 2
  SUITE = 3
}

enum BookingState {
  RESERVED = 0
  PAID = 1
  CANCELLED = 2
  DEPARTED = 3
}

enum Amenity {
  WIFI
  BREAKFAST
  PARKING
  POOL
}

struct Photo {
  1: string url
  2: optional string caption
  3: optional binary thumbnail
}

struct BedSetup {
  1: i8 single_beds
  2: i8 double_beds
}

struct CancellationRule {
  1: i32 days_before
  2: i32 percent_kept
}

struct Policy {
  1: list<CancellationRule> cancellation
  2: bool pets_allowed = false
  3: optional string check_in_from = "15:00"
}

struct Rate {
  1: RoomKind kind
  2: common.Money per_night
  3: optional i32 discount_percent
}

struct RoomType {
  1: required RoomKind kind
  2: BedSetup beds
  3: i32 count
  4: set<Amenity> amenities
  5: optional list<Photo> photos
}

struct Review {
  1: string author
  2: i8 stars
  3: optional string text
  4: optional common.Date stayed
}

struct ReviewSummary {
  1: i32 count
  2: double average
  3: map<i8, i32> by_stars
}

struct Hotel {
  1: required HotelId id
  2: required string name
  3: common.Address address
  4: common.Contact contact
  5: list<RoomType> rooms
  6: list<Rate> rates
  7: Policy policy
  8: list<Review> reviews
  9: optional Photo cover
  10: set<Amenity> amenities
}

struct Guest {
  1: required string name
  2: optional i32 age
  3: optional common.Contact contact
}

struct Stay {
  1: common.DateRange dates
  2: RoomKind kind = RoomKind.DOUBLE
  3: list<Guest> guests
}

struct Page {
  1: i32 offset
  2: optional i32 limit = PAGE_SIZE
}

struct SearchFilter {
  1: optional string city
  2: optional common.Money price_limit
  3: optional set<Amenity> amenities
  4: optional double stars
  5: optional bool pets
}

struct SearchRequest {
  1: SearchFilter filter
  2: Page page
}

struct SearchHit {
  1: HotelId id
  2: string name
  3: common.Money from_price
  4: ReviewSummary reviews
}

struct SearchResponse {
  1: list<SearchHit> hits
  2: i32 total
  3: optional Page next
}

struct QuoteRequest {
  1: required HotelId hotel
  2: required Stay stay
  3: optional string season
}

struct QuoteLine {
  1: string text
  2: common.Money price
}

struct Quote {
  1: list<QuoteLine> lines
  2: common.Money total
  3: i32 nights
}

struct CardPayment {
  1: string token
  2: optional string holder
}

struct VoucherPayment {
  1: list<string> codes
}

struct InvoicePayment {
  1: common.Address address
  2: i32 due_days = 14
}

union Payment {
  1: CardPayment card
  2: VoucherPayment voucher
  3: InvoicePayment invoice
  4: string cash_note
}

struct BookRequest {
  1: required QuoteRequest quote
  2: required Payment payment
  3: map<string, string> wishes
  4: optional string idempotency_key
}

struct BookingEvent {
  1: BookingState state
  2: i64 at
  3: optional string note
}

struct Refund {
  1: common.Money amount
  2: string reason
}

struct Booking {
  1: BookingId id
  2: HotelId hotel
  3: Stay stay
  4: Quote quote
  5: Payment payment
  6: BookingState state
  7: list<BookingEvent> history
  8: map<string, string> wishes
  9: optional Refund refund
}

struct CancelRequest {
  1: required BookingId id
  2: optional string reason
  3: i32 days_before
}

struct ListRequest {
  1: optional set<BookingState> states
  2: Page page
}

struct ListResponse {
  1: list<Booking> bookings
  2: map<BookingState, i32> counts
}

struct Occupancy {
  1: map<HotelId, map<RoomKind, i32>> booked
  2: map<HotelId, ReviewSummary> reviews
}

exception NotFound {
  1: string what
}

exception FullyBooked {
  1: HotelId hotel
  2: RoomKind kind
  3: optional i32 left
}

exception InvalidRequest {
  1: string field
  2: string reason
}

service BookingService {
  SearchResponse search(1: SearchRequest req)
  Hotel getHotel(1: HotelId id) throws (1: NotFound not_found)
  Quote quote(1: QuoteRequest req) throws (1: NotFound not_found, 2: InvalidRequest invalid)
  Booking book(1: BookRequest req) throws (1: NotFound not_found, 2: InvalidRequest invalid, 3: FullyBooked full)
  Booking getBooking(1: BookingId id)
  Booking cancel(1: CancelRequest req) throws (1: NotFound not_found, 2: InvalidRequest invalid)
  ListResponse list(1: ListRequest req)
  ReviewSummary review(1: HotelId hotel, 2: Review review) throws (1: NotFound not_found)
  Occupancy occupancy()
  list<string> cities()
  oneway void viewed(1: HotelId hotel)
  i64 views(1: HotelId hotel)
}
