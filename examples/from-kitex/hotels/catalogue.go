// Package hotels is a booking service: what it does, and not how it is called.
package hotels

import (
	"fmt"

	"example.com/booking/gen/booking"
	"example.com/booking/gen/common"
)

func euros(amount common.Cents) *common.Money {
	money := common.NewMoney()
	money.Amount = amount
	return money
}

func text(s string) *string { return &s }

// catalogue returns the hotels that the service begins with.
func catalogue() []*booking.Hotel {
	var hotels []*booking.Hotel
	for i, city := range []string{"Berlin", "Hamburg", "Berlin", "Weimar"} {
		address := common.NewAddress()
		address.Street, address.City = fmt.Sprintf("Main Street %d", i+1), city
		if i == 0 {
			address.Location = &common.GeoPoint{Latitude: 52.5, Longitude: 13.4}
		}
		policy := booking.NewPolicy()
		policy.PetsAllowed = i%2 == 0
		policy.Cancellation = []*booking.CancellationRule{{DaysBefore: 7, PercentKept: 20}, {DaysBefore: 1, PercentKept: 80}}
		hotel := booking.NewHotel()
		hotel.Id, hotel.Name = booking.HotelId(fmt.Sprintf("H%d", i+1)), fmt.Sprintf("%s House %d", city, i+1)
		hotel.SetAddress(address)
		hotel.SetContact(&common.Contact{Name: "Desk", Email: text("desk@example.com"), Phones: []*common.Phone{{Number: "030 1234", Extension: text("5")}}})
		hotel.Rooms = []*booking.RoomType{
			{Kind: booking.RoomKind_SINGLE, Beds: &booking.BedSetup{SingleBeds: 1}, Count: 2, Amenities: []booking.Amenity{booking.Amenity_WIFI}},
			{Kind: booking.RoomKind_DOUBLE, Beds: &booking.BedSetup{DoubleBeds: 1}, Count: int32(i) + 1,
				Photos: []*booking.Photo{{Url: "double.jpg", Thumbnail: []byte{0xff, 0xd8}}}},
		}
		hotel.Rates = []*booking.Rate{
			{Kind: booking.RoomKind_SINGLE, PerNight: euros(common.Cents(6000 + 1000*i))},
			{Kind: booking.RoomKind_DOUBLE, PerNight: euros(common.Cents(9000 + 1000*i))},
		}
		if i == 2 {
			percent := int32(10)
			hotel.Rates[1].DiscountPercent = &percent
		}
		hotel.Policy = policy
		hotel.Amenities = []booking.Amenity{booking.Amenity_WIFI, booking.Amenity(i)}
		hotels = append(hotels, hotel)
	}
	return hotels
}

// summary counts the stars of reviews.
func summary(reviews []*booking.Review) *booking.ReviewSummary {
	result := booking.NewReviewSummary()
	result.ByStars = map[int8]int32{}
	total := 0
	for _, review := range reviews {
		result.Count++
		result.ByStars[review.GetStars()]++
		total += int(review.Stars)
	}
	if result.Count > 0 {
		result.Average = float64(total) / float64(result.Count)
	}
	return result
}
