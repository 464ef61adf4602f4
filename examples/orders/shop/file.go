package shop

import (
	"encoding/json"
	"fmt"

	"github.com/fulmar-rpc/fulmar/examples/orders/gen/orders"
)

// File is the content of data/orders.json. The generated structs read it as it
// is: their JSON names are those of the IDL.
type File struct {
	Products  []orders.Product  `json:"products"`
	Stock     map[string]int32  `json:"stock"`
	Customers []orders.Customer `json:"customers"`
	// Orders are in ascending order of their numbers. One without an address
	// goes to that of its customer.
	Orders []orders.Order `json:"orders"`
}

// ReadFile reads the content of a file.
func ReadFile(content []byte) (*File, error) {
	var file File
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("orders file: %w", err)
	}
	if len(file.Products) == 0 || len(file.Customers) == 0 || len(file.Orders) == 0 {
		return nil, fmt.Errorf("orders file: %d products, %d customers and %d orders; some of each are needed",
			len(file.Products), len(file.Customers), len(file.Orders))
	}
	return &file, nil
}

// New returns a shop that starts with the content of a file, which it takes
// over.
func New(file *File) *Shop {
	s := &Shop{
		catalogue: file.Products,
		customers: map[int64]orders.Customer{},
		stock:     file.Stock,
		views:     map[orders.OrderID]int64{},
		orders:    map[orders.OrderID]*orders.Order{},
	}
	for _, customer := range file.Customers {
		s.customers[customer.ID] = customer
	}
	for i := range file.Orders {
		order := &file.Orders[i]
		if order.ShipTo == (orders.Address{}) {
			order.ShipTo = s.customers[order.CustomerID].Address
		}
		s.orders[order.ID] = order
		s.last = max(s.last, order.ID)
	}
	return s
}
