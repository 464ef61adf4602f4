// Package fulmar is an RPC framework: servers and clients for services defined
// in Thrift, wire compatible with Apache Thrift and Kitex.
//
// A Server takes implementations of generated service interfaces and answers
// every allowed protocol on one port. A Client calls one target; generated
// clients are thin wrappers around it. Both are configured by a struct in which
// 0 means the documented default and a negative value switches something off.
//
// Errors of calls are *Error with a Code, unless the IDL declares an exception
// for them. Interceptors wrap calls on either side. CallFrom tells a handler
// about its call.
//
// Everything a peer sends is checked against limits that are on by default;
// docs/guide/limits.md lists them.
package fulmar
