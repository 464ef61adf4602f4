package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"example.com/booking/gen/booking"
	"example.com/booking/gen/common"
)

func newOf[T any](v T) *T { return &v }

func stay(kind booking.RoomKind, nights int8) *booking.Stay {
	made := booking.NewStay()
	made.SetKind(kind)
	made.SetDates(&common.DateRange{
		From:  &common.Date{Year: 2026, Month: 7, Day: 1},
		Until: &common.Date{Year: 2026, Month: 7, Day: 1 + nights},
	})
	made.SetGuests([]*booking.Guest{{Name: "Ada", Age: newOf[int32](36)}, {Name: "Grace"}})
	return made
}

// visit searches, books and cancels, and prints what comes of it.
func visit(ctx context.Context, api booking.BookingServiceClient, out io.Writer) error {
	cities, err := api.Cities(ctx)
	if err != nil {
		return err
	}
	filter := booking.NewSearchFilter()
	filter.SetCity(newOf("Berlin"))
	filter.SetAmenities([]booking.Amenity{booking.Amenity_WIFI})
	page := booking.NewPage()
	page.Limit = 1
	found, err := api.Search(ctx, &booking.SearchRequest{Filter: filter, Page: page})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %v: %s from %d %s, more from %d\n", found.Total, cities,
		found.Hits[0].GetName(), found.Hits[0].FromPrice.Amount, found.Hits[0].FromPrice.GetCurrency(), found.GetNext().GetOffset())

	hotel, err := api.GetHotel(ctx, "H3")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %s, %s: %v, cover %t, check in %s, pets %t\n", hotel.Name, hotel.Address.Street, hotel.Address.Country,
		hotel.Amenities, hotel.IsSetCover(), hotel.Policy.GetCheckInFrom(), hotel.Policy.PetsAllowed)
	if err := book(ctx, api, out, hotel); err != nil {
		return err
	}
	return failures(ctx, api, out)
}

// book books, pays, reviews, and cancels.
func book(ctx context.Context, api booking.BookingServiceClient, out io.Writer, hotel *booking.Hotel) error {
	quote := &booking.QuoteRequest{Hotel: hotel.Id, Stay: stay(booking.RoomKind_DOUBLE, 3), Season: newOf("summer")}
	made, err := api.Book(ctx, &booking.BookRequest{
		Quote:          quote,
		Payment:        &booking.Payment{Card: &booking.CardPayment{Token: "tok_1"}},
		Wishes:         map[string]string{"floor": "high"},
		IdempotencyKey: newOf("first"),
	})
	if err != nil {
		return err
	}
	for _, line := range made.Quote.GetLines() {
		fmt.Fprintf(out, "  %s: %d\n", line.Text, line.Price.Amount)
	}
	fmt.Fprintf(out, "booking %d: %s, %d nights, %d %s, card %t, guests %s and %s\n", made.Id, made.State, made.Quote.Nights,
		made.Quote.Total.Amount, booking.HOUSE_CURRENCY, made.Payment.IsSetCard(), made.Stay.Guests[0].Name, made.Stay.Guests[1].Name)
	summary, err := api.Review(ctx, hotel.Id, &booking.Review{Author: "Ada", Stars: 4, Text: newOf("quiet")})
	if err != nil {
		return err
	}
	cancelled, err := api.Cancel(ctx, &booking.CancelRequest{Id: made.Id, Reason: newOf("ill"), DaysBefore: 5})
	if err != nil {
		return err
	}
	listed, err := api.List(ctx, &booking.ListRequest{States: []booking.BookingState{booking.BookingState_CANCELLED}, Page: booking.NewPage()})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d back, %s; %d events; %d cancelled of %v; %.1f stars\n", cancelled.State, cancelled.GetRefund().GetAmount().Amount,
		*cancelled.History[2].Note, len(cancelled.History), len(listed.Bookings), listed.Counts, summary.Average)
	return nil
}

// failures asks for what cannot be had.
func failures(ctx context.Context, api booking.BookingServiceClient, out io.Writer) error {
	var missing *booking.NotFound
	if _, err := api.GetHotel(ctx, "H9"); !errors.As(err, &missing) {
		return fmt.Errorf("hotel H9: %w", err)
	}
	var wrong *booking.InvalidRequest
	if _, err := api.Quote(ctx, &booking.QuoteRequest{Hotel: "H1", Stay: stay(booking.RoomKind_SINGLE, 40)}); !errors.As(err, &wrong) {
		return fmt.Errorf("a stay of 40 nights: %w", err)
	}
	var full *booking.FullyBooked
	for range 2 {
		_, err := api.Book(ctx, &booking.BookRequest{
			Quote:   &booking.QuoteRequest{Hotel: "H1", Stay: stay(booking.RoomKind_DOUBLE, 1)},
			Payment: &booking.Payment{CashNote: newOf("at the desk")},
		})
		if err != nil && !errors.As(err, &full) {
			return err
		}
	}
	none, err := api.GetBooking(ctx, 77)
	if err != nil {
		return err
	}
	occupancy, err := api.Occupancy(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "no %s; %s %s; %s has %d of %s; booking 77 is there: %t; booked: %v\n", missing.What, wrong.Field, wrong.Reason,
		full.Hotel, full.GetLeft(), full.Kind, none != nil, occupancy.Booked["H1"])
	return nil
}
