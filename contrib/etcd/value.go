package etcd

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
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
	v := instanceValue{Network: "tcp", Address: instance.Address}
	v.Weight, v.Tags = registries.FieldsOf(instance, zoneTag)
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
		return cluster.Instance{}, fmt.Errorf("value: unknown network %.80q", v.Network)
	}
	if v.Network != "unix" && strings.HasPrefix(address, "unix:") {
		return cluster.Instance{}, fmt.Errorf("value: address %.80q is not host:port", address)
	}
	instance, err := registries.InstanceOf(address, v.Weight, v.Tags, zoneTag)
	if err != nil {
		return cluster.Instance{}, fmt.Errorf("value: %w", err)
	}
	return instance, nil
}
