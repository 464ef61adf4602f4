namespace go common

typedef i64 Cents
typedef string Currency

/** An amount in the smallest unit of a currency. */
struct Money {
  1: required Cents amount
  2: Currency currency = "EUR"
}

/** A day, as ISO 8601 writes it. */
struct Date {
  1: i16 year
  2: i8 month
  3: i8 day
}

/** From the first night to the morning of departure. */
struct DateRange {
  1: required Date from
  2: required Date until
}

struct GeoPoint {
  1: double latitude
  2: double longitude
}

struct Address {
  1: string street
  2: string city
  3: string postal_code
  4: string country = "DE"
  5: optional GeoPoint location
}

struct Phone {
  1: string number
  2: optional string extension
}

struct Contact {
  1: required string name
  2: optional string email
  3: list<Phone> phones
}
