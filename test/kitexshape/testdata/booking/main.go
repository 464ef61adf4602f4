// Command booking serves the booking service at the address in ADDRESS.
package main

import (
	"log"
	"net"
	"os"

	"example.com/booking/gen/booking/bookingservice"
	"example.com/booking/hotels"
	"github.com/cloudwego/kitex/server"
)

func main() {
	address, err := net.ResolveTCPAddr("tcp", os.Getenv("ADDRESS"))
	if err != nil {
		log.Fatal(err)
	}
	if err := bookingservice.NewServer(hotels.New(), server.WithServiceAddr(address)).Run(); err != nil {
		log.Fatal(err)
	}
}
