// Package etcd finds and announces servers through etcd, in the format of Kitex, and
// watches policies that are kept there. Servers and clients of Fulmar and of Kitex find
// each other with it; docs/guide/registries.md says how, and what happens when etcd fails.
package etcd
