package main

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"example.com/booking/gen/booking"
	"example.com/booking/hotels"
	"github.com/fulmar-rpc/fulmar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const printed = `2 of [Berlin Hamburg Weimar]: Berlin House 1 from 6000 EUR, more from 1
Berlin House 3, Main Street 3, DE: [WIFI PARKING], cover false, check in 15:00, pets true
  3 nights, DOUBLE: 33000
  discount: -3300
  season: 5940
booking 1: PAID, 3 nights, 35640 EUR, card true, guests Ada and Grace
CANCELLED: 28512 back, ill; 3 events; 1 cancelled of map[CANCELLED:1]; 4.0 stars
no hotel H9; dates 40 nights, at most 28; H1 has 0 of DOUBLE; booking 77 is there: false; booked: map[DOUBLE:1]
`

func TestVisit_PrintsWhatItPrintedOnKitex(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	booking.RegisterBookingServiceServer(server, hotels.New())
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String()})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := visit(ctx, booking.NewBookingServiceClient(client), &out); err != nil {
		t.Error(err)
	}
	if out.String() != printed {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), printed)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
