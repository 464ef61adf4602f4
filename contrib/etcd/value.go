package etcd

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// instanceValue is the value of a key, as Kitex writes and reads it.
type instanceValue struct {
	Network string            `json:"network"`
	Address string            `json:"address"`
	Weight  int               `json:"weight"`
	Tags    map[string]string `json:"tags"`
}

// formatValue returns the value that announces an instance, and the address that the key
// ends with.
func formatValue(instance cluster.Instance, zoneTag string) (value []byte, address string, err error) {
	v := instanceValue{
		Network: "tcp", Address: instance.Address,
		Weight: or(instance.Weight, defaultWeight), Tags: zoned(instance, zoneTag),
	}
	if path, ok := strings.CutPrefix(instance.Address, "unix:"); ok {
		v.Network, v.Address = "unix", strings.TrimPrefix(path, "//")
	}
	value, err = json.Marshal(v)
	return value, v.Address, err
}

// parseValue reads the value of a key. It returns an error that quotes little of a value
// that announces nothing.
func parseValue(value []byte, zoneTag string) (cluster.Instance, error) {
	var v instanceValue
	if err := json.Unmarshal(value, &v); err != nil {
		return cluster.Instance{}, fmt.Errorf("value: %w", err)
	}
	address := v.Address
	switch v.Network {
	case "tcp", "tcp4", "tcp6", "":
	case "unix":
		// As cluster.Instance has it: unix:///path, or unix:@abstract.
		if strings.HasPrefix(address, "/") {
			address = "//" + address
		}
		address = "unix:" + address
	default:
		return cluster.Instance{}, fmt.Errorf("value: unknown network %q", abridge(v.Network))
	}
	if v.Network != "unix" && strings.HasPrefix(address, "unix:") {
		return cluster.Instance{}, fmt.Errorf("value: address %q is not host:port", abridge(address))
	}
	if err := checkAddress(address); err != nil {
		return cluster.Instance{}, fmt.Errorf("value: %w", err)
	}
	return cluster.Instance{Address: address, Weight: boundWeight(v.Weight), Zone: v.Tags[zoneTag], Tags: v.Tags}, nil
}
