// Package methods holds what the methods of generated Thrift structs share: String,
// Equal, Clone, Detach, SizeThrift, and JSON. Generated code is its only intended
// caller; users call the methods.
package methods
