// Package registries is what registries have in common that implement cluster.Registry:
// settings, checks of what is announced and read, lists that survive the failures of
// their source, pauses, and a log that cannot be flooded. contrib/etcd and
// contrib/zookeeper are made with it, and others can be. It connects to nothing and
// starts no goroutine.
package registries
