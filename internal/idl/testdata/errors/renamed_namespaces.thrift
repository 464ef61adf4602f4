# load: a.thrift b.thrift orders.thrift -namespace orders=acme.func
-- a.thrift --
namespace go first
include "b.thrift"
struct A { 1: b.B b }
-- b.thrift --
namespace go orders
struct B {}
-- orders.thrift --
