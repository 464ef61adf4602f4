# load: orders.thrift -namespace orders=acme.orders
-- orders.thrift --
namespace go shop
struct B {}
