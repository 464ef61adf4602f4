// Command client calls the booking service at the address in ADDRESS.
package main

import (
	"context"
	"log"
	"os"

	"example.com/booking/gen/booking"
	"github.com/fulmar-rpc/fulmar"
)

func main() {
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: os.Getenv("ADDRESS")})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := visit(context.Background(), booking.NewBookingServiceClient(client), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
