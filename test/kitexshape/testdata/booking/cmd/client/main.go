// Command client calls the booking service at the address in ADDRESS.
package main

import (
	"context"
	"log"
	"os"

	"example.com/booking/gen/booking/bookingservice"
	"github.com/cloudwego/kitex/client"
)

func main() {
	api, err := bookingservice.NewClient("booking", client.WithHostPorts(os.Getenv("ADDRESS")))
	if err != nil {
		log.Fatal(err)
	}
	if err := visit(context.Background(), api, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
