# load: a.thrift b.thrift sub/a.thrift upper.thrift
-- a.thrift --
namespace go acme.shared
struct Order {}
service Orders {}
-- b.thrift --
namespace go acme.shared
enum Order { A }
const i32 Orders = 1
-- sub/a.thrift --
namespace go acme.shared
-- upper.thrift --
namespace go acme.Shared
