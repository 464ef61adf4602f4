// Package testservers starts real registries, etcd and ZooKeeper, and puts networks that
// fail in front of them: on loopback only, in folders that the caller gives, and ended by
// the id of the process. It is for tests.
package testservers
