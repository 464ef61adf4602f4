# load: main.thrift
-- main.thrift --
namespace go first
include "b.thrift"
include "d.thrift"
struct Uses { 1: b.Money m, 2: d.Unrelated u }
-- b.thrift --
namespace go second
include "c.thrift"
struct Money { 1: c.Base base }
-- c.thrift --
namespace go first
struct Base {}
-- d.thrift --
namespace go third
struct Unrelated {}
