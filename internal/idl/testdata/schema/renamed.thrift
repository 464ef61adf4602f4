# load: a.thrift -namespace second=first
-- a.thrift --
namespace go first
include "b.thrift"
struct Order { 1: b.Money price }
-- b.thrift --
namespace go second
include "c.thrift"
struct Money { 1: c.Base base }
-- c.thrift --
namespace go first
struct Base {}
