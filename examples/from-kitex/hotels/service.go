package hotels

import (
	"context"
	"maps"
	"slices"
	"sync"

	"example.com/booking/gen/booking"
	"example.com/booking/gen/common"
)

// Service implements the service of the definition. It is safe for concurrent use.
type Service struct {
	mu       sync.Mutex
	hotels   []*booking.Hotel
	bookings []*booking.Booking
	keys     map[string]booking.BookingId
	views    map[booking.HotelId]int64
}

var _ booking.BookingService = (*Service)(nil)

// New returns a service with a few hotels.
func New() *Service {
	return &Service{hotels: catalogue(), keys: map[string]booking.BookingId{}, views: map[booking.HotelId]int64{}}
}

func (s *Service) find(id booking.HotelId) (*booking.Hotel, error) {
	for _, hotel := range s.hotels {
		if hotel.Id == id {
			return hotel, nil
		}
	}
	return nil, &booking.NotFound{What: "hotel " + id}
}

func matches(hotel *booking.Hotel, filter *booking.SearchFilter) bool {
	if filter == nil {
		return true
	}
	if filter.City != nil && *filter.City != hotel.Address.City {
		return false
	}
	if filter.IsSetPriceLimit() && cheapest(hotel) > filter.PriceLimit.Amount {
		return false
	}
	if filter.IsSetStars() && summary(hotel.Reviews).Average < filter.GetStars() {
		return false
	}
	if filter.Pets != nil && *filter.Pets && !hotel.GetPolicy().GetPetsAllowed() {
		return false
	}
	for _, amenity := range filter.GetAmenities() {
		if !slices.Contains(hotel.Amenities, amenity) {
			return false
		}
	}
	return true
}

func cheapest(hotel *booking.Hotel) common.Cents {
	lowest := hotel.Rates[0].PerNight.Amount
	for _, rate := range hotel.Rates {
		lowest = min(lowest, rate.PerNight.Amount)
	}
	return lowest
}

// Search implements the method of the definition.
func (s *Service) Search(ctx context.Context, req *booking.SearchRequest) (resp *booking.SearchResponse, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp = booking.NewSearchResponse()
	resp.Hits = []*booking.SearchHit{}
	for _, hotel := range s.hotels {
		if !matches(hotel, req.GetFilter()) {
			continue
		}
		resp.Total++
		page := req.Page
		if page != nil && (resp.Total <= page.Offset || int32(len(resp.Hits)) == page.GetLimit()) {
			continue
		}
		resp.Hits = append(resp.Hits, &booking.SearchHit{
			Id: hotel.Id, Name: hotel.GetName(), FromPrice: euros(cheapest(hotel)), Reviews: summary(hotel.Reviews),
		})
	}
	if page := req.Page; page != nil && page.Offset+int32(len(resp.Hits)) < resp.Total {
		resp.Next = booking.NewPage()
		resp.Next.Offset, resp.Next.Limit = page.Offset+int32(len(resp.Hits)), page.Limit
	}
	return resp, nil
}

// GetHotel implements the method of the definition.
func (s *Service) GetHotel(ctx context.Context, id booking.HotelId) (resp *booking.Hotel, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(id)
}

// Quote implements the method of the definition.
func (s *Service) Quote(ctx context.Context, req *booking.QuoteRequest) (resp *booking.Quote, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hotel, err := s.find(req.GetHotel())
	if err != nil {
		return nil, err
	}
	return price(hotel, req)
}

// Book implements the method of the definition.
func (s *Service) Book(ctx context.Context, req *booking.BookRequest) (resp *booking.Booking, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, again := s.keys[req.GetIdempotencyKey()]; again {
		return s.bookings[id-1], nil
	}
	if req.Payment.CountSetFieldsPayment() != 1 {
		return nil, invalid("payment", "%d ways to pay", req.Payment.CountSetFieldsPayment())
	}
	hotel, err := s.find(req.Quote.Hotel)
	if err != nil {
		return nil, err
	}
	quote, err := price(hotel, req.Quote)
	if err != nil {
		return nil, err
	}
	if left := s.left(hotel, req.Quote.Stay.Kind); left < 1 {
		return nil, &booking.FullyBooked{Hotel: hotel.Id, Kind: req.Quote.Stay.Kind, Left: &left}
	}
	made := booking.NewBooking()
	made.Id, made.Hotel = booking.BookingId(len(s.bookings)+1), hotel.Id
	made.Stay, made.Quote, made.Payment, made.Wishes = req.Quote.Stay, quote, req.Payment, req.Wishes
	enter(made, booking.BookingState_RESERVED, nil)
	if made.Payment.IsSetCard() || made.Payment.IsSetVoucher() {
		enter(made, booking.BookingState_PAID, text("at once"))
	}
	s.bookings = append(s.bookings, made)
	if req.IsSetIdempotencyKey() {
		s.keys[*req.IdempotencyKey] = made.Id
	}
	return made, nil
}

// enter changes the state of a booking.
func enter(b *booking.Booking, state booking.BookingState, note *string) {
	b.State = state
	event := booking.NewBookingEvent()
	event.State, event.At, event.Note = state, int64(len(b.History)), note
	b.History = append(b.History, event)
}

// left is how many rooms of a kind nobody has booked.
func (s *Service) left(hotel *booking.Hotel, kind booking.RoomKind) int32 {
	left := int32(0)
	for _, room := range hotel.Rooms {
		if room.Kind == kind {
			left += room.Count
		}
	}
	for _, b := range s.bookings {
		if b.Hotel == hotel.Id && b.Stay.Kind == kind && b.State != booking.BookingState_CANCELLED {
			left--
		}
	}
	return left
}

// GetBooking implements the method of the definition: without a booking of that number there
// is no result, which is no failure.
func (s *Service) GetBooking(ctx context.Context, id booking.BookingId) (resp *booking.Booking, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < 1 || id > booking.BookingId(len(s.bookings)) {
		return nil, nil
	}
	return s.bookings[id-1], nil
}

// Cancel implements the method of the definition.
func (s *Service) Cancel(ctx context.Context, req *booking.CancelRequest) (resp *booking.Booking, err error) {
	found, err := s.GetBooking(ctx, req.Id)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, &booking.NotFound{What: "booking"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found.State == booking.BookingState_CANCELLED {
		return nil, invalid("id", "%s already", found.State)
	}
	hotel, err := s.find(found.Hotel)
	if err != nil {
		return nil, err
	}
	if found.State == booking.BookingState_PAID {
		percent := 100 - kept(hotel.Policy, req.DaysBefore)
		found.Refund = &booking.Refund{Amount: euros(found.Quote.Total.Amount * common.Cents(percent) / 100), Reason: req.GetReason()}
	}
	enter(found, booking.BookingState_CANCELLED, req.Reason)
	return found, nil
}

// List implements the method of the definition.
func (s *Service) List(ctx context.Context, req *booking.ListRequest) (resp *booking.ListResponse, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp = &booking.ListResponse{Bookings: []*booking.Booking{}, Counts: map[booking.BookingState]int32{}}
	for _, b := range s.bookings {
		resp.Counts[b.State]++
		if !req.IsSetStates() || slices.Contains(req.States, b.State) {
			resp.Bookings = append(resp.Bookings, b)
		}
	}
	return resp, nil
}

// Review implements the method of the definition.
func (s *Service) Review(ctx context.Context, id booking.HotelId, review *booking.Review) (resp *booking.ReviewSummary, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hotel, err := s.find(id)
	if err != nil {
		return nil, err
	}
	hotel.Reviews = append(hotel.Reviews, review)
	return summary(hotel.Reviews), nil
}

// Occupancy implements the method of the definition.
func (s *Service) Occupancy(ctx context.Context) (resp *booking.Occupancy, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp = booking.NewOccupancy()
	resp.Booked = map[booking.HotelId]map[booking.RoomKind]int32{}
	resp.Reviews = map[booking.HotelId]*booking.ReviewSummary{}
	for _, hotel := range s.hotels {
		resp.Booked[hotel.Id] = map[booking.RoomKind]int32{}
		resp.Reviews[hotel.Id] = summary(hotel.Reviews)
	}
	for _, b := range s.bookings {
		if b.State != booking.BookingState_CANCELLED {
			resp.Booked[b.Hotel][b.Stay.Kind]++
		}
	}
	return resp, nil
}

// Cities implements the method of the definition.
func (s *Service) Cities(ctx context.Context) (resp []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cities := map[string]bool{}
	for _, hotel := range s.hotels {
		cities[hotel.GetAddress().City] = true
	}
	return slices.Sorted(maps.Keys(cities)), nil
}

// Viewed implements the method of the definition.
func (s *Service) Viewed(ctx context.Context, hotel booking.HotelId) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.views[hotel]++
	return nil
}

// Views implements the method of the definition.
func (s *Service) Views(ctx context.Context, hotel booking.HotelId) (resp int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.views[hotel], nil
}
