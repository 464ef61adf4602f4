package hotels

import (
	"fmt"
	"time"

	"example.com/booking/gen/booking"
	"example.com/booking/gen/common"
)

func day(date *common.Date) time.Time {
	return time.Date(int(date.GetYear()), time.Month(date.GetMonth()), int(date.GetDay()), 0, 0, 0, 0, time.UTC)
}

func invalid(field, format string, arguments ...any) *booking.InvalidRequest {
	return &booking.InvalidRequest{Field: field, Reason: fmt.Sprintf(format, arguments...)}
}

// nights counts those of a stay.
func nights(stay *booking.Stay) (int32, error) {
	if !stay.IsSetDates() || !stay.Dates.IsSetFrom() || !stay.Dates.IsSetUntil() {
		return 0, invalid("dates", "missing")
	}
	count := int32(day(stay.Dates.Until).Sub(day(stay.Dates.From)).Hours() / 24)
	switch {
	case count < 1:
		return 0, invalid("dates", "%d nights", count)
	case count > booking.MAX_NIGHTS:
		return 0, invalid("dates", "%d nights, at most %d", count, booking.MAX_NIGHTS)
	}
	return count, nil
}

func rateOf(hotel *booking.Hotel, kind booking.RoomKind) *booking.Rate {
	for _, rate := range hotel.GetRates() {
		if rate.Kind == kind {
			return rate
		}
	}
	return nil
}

// price makes the quote for a stay in a hotel.
func price(hotel *booking.Hotel, req *booking.QuoteRequest) (*booking.Quote, error) {
	count, err := nights(req.GetStay())
	if err != nil {
		return nil, err
	}
	rate := rateOf(hotel, req.Stay.Kind)
	if rate == nil {
		return nil, invalid("kind", "%s has no %s", hotel.Name, req.Stay.Kind)
	}
	perNight := rate.GetPerNight().GetAmount()
	quote := booking.NewQuote()
	quote.Nights, quote.Total = count, euros(0)
	add := func(text string, amount common.Cents) {
		line := booking.NewQuoteLine()
		line.SetText(text)
		line.SetPrice(euros(amount))
		quote.Lines = append(quote.Lines, line)
		quote.Total.Amount += amount
	}
	add(fmt.Sprintf("%d nights, %s", count, rate.Kind), perNight*common.Cents(count))
	if rate.IsSetDiscountPercent() {
		add("discount", -quote.Total.Amount*common.Cents(*rate.DiscountPercent)/100)
	}
	if req.IsSetSeason() {
		percent, known := booking.SEASON_PERCENT[req.GetSeason()]
		if !known {
			return nil, invalid("season", "%q is none", *req.Season)
		}
		add("season", quote.Total.Amount*common.Cents(percent-100)/100)
	}
	return quote, nil
}

// kept is how many percent of the price a guest loses who cancels.
func kept(policy *booking.Policy, daysBefore int32) int32 {
	percent := int32(0)
	for _, rule := range policy.GetCancellation() {
		if daysBefore <= rule.DaysBefore {
			percent = max(percent, rule.PercentKept)
		}
	}
	return percent
}
