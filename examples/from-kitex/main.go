// Command booking serves the booking service at the address in ADDRESS.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"example.com/booking/gen/booking"
	"example.com/booking/hotels"
	"github.com/fulmar-rpc/fulmar"
)

//go:generate fulmar gen --shape=kitex -o gen idl/booking.thrift

func main() {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: os.Getenv("ADDRESS")})
	if err != nil {
		log.Fatal(err)
	}
	booking.RegisterBookingServiceServer(server, hotels.New())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := server.Serve(ctx); err != nil { // drains and returns nil when ctx ends
		log.Fatal(err)
	}
}
