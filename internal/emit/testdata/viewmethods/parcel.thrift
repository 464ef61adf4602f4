namespace go viewmethods.parcel

struct Parcel {
  1: required string address
  2: optional i32 grams
  3: list<string> notes
}

/** What parcels go through. */
service Depot {
  Parcel weigh(1: Parcel parcel)
} (go.views = "both")
