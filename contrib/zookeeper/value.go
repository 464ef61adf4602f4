package zookeeper

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// instanceValue is the data of a node, as Kitex writes and reads it.
type instanceValue struct {
	Weight int
	Tags   map[string]string
}

// formatValue returns the data that announces an instance.
func formatValue(instance cluster.Instance, zoneTag string) ([]byte, error) {
	weight, tags := registries.FieldsOf(instance, zoneTag)
	return json.Marshal(instanceValue{Weight: weight, Tags: tags})
}

// parseValue reads the data of a node, whose name is the address. It returns an error that
// quotes little of a node that announces nothing.
func parseValue(name string, data []byte, zoneTag string) (cluster.Instance, error) {
	if err := registries.CheckHostPort(name); err != nil {
		return cluster.Instance{}, fmt.Errorf("node: %w", err)
	}
	var v instanceValue
	if err := json.Unmarshal(data, &v); err != nil {
		return cluster.Instance{}, fmt.Errorf("node: %w", err)
	}
	return registries.InstanceOf(name, v.Weight, v.Tags, zoneTag)
}

// nodeName returns the name of the node of an instance: its address, which can be no
// socket, because a path is more than one node.
func nodeName(instance cluster.Instance) (string, error) {
	if strings.HasPrefix(instance.Address, "unix:") {
		return "", fmt.Errorf("instance: address %.80q is not host:port, and the name of a node can be nothing else", instance.Address)
	}
	return instance.Address, nil
}
