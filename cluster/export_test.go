package cluster

import "net"

// ParseAnnouncement reads the file of an instance, for its fuzz target.
func ParseAnnouncement(data []byte) (Instance, error) {
	a, err := parseAnnouncement(data)
	return a.instance(), err
}

// FileName returns the name of a file for any text.
func FileName(text string) string { return fileName(text) }

// InstancesOfSRV returns what the records of an answer of DNS mean.
func InstancesOfSRV(records []*net.SRV) []Instance { return instancesOfSRV(records) }
