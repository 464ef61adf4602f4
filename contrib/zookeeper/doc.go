// Package zookeeper finds and announces servers through ZooKeeper, in the format of
// Kitex: servers and clients of Fulmar and of Kitex find each other with it.
// docs/guide/registries.md says how, and what happens when ZooKeeper fails.
package zookeeper
