package main

import (
	"encoding/json"
	"fmt"
	"os"

	types "github.com/fulmar-rpc/fulmar/test/kitex/gen/orders"
)

// file is the content of orders.json. Kitex's structs read it as it is, like
// Fulmar's: their JSON names are those of the IDL.
type file struct {
	Products  []*types.Product  `json:"products"`
	Stock     map[string]int32  `json:"stock"`
	Customers []*types.Customer `json:"customers"`
	Orders    []*types.Order    `json:"orders"`
}

// readFile reads a file and adds what an order has by default: the address of
// its customer, and no wishes.
func readFile(name string) (*file, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f file
	if err := json.Unmarshal(content, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(f.Products) == 0 || len(f.Customers) == 0 || len(f.Orders) == 0 {
		return nil, fmt.Errorf("%s: %d products, %d customers and %d orders; some of each are needed",
			name, len(f.Products), len(f.Customers), len(f.Orders))
	}
	addresses := map[int64]*types.Address{}
	for _, customer := range f.Customers {
		addresses[customer.Id] = customer.Address
	}
	for _, order := range f.Orders {
		if order.ShipTo == nil {
			order.ShipTo = addresses[order.CustomerId]
		}
		if order.Wishes == nil {
			order.Wishes = map[string]string{}
		}
	}
	return &f, nil
}
