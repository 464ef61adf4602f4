// Package data holds what the shop starts with; see make_orders.py.
package data

import _ "embed"

// Orders is the content of orders.json.
//
//go:embed orders.json
var Orders []byte
