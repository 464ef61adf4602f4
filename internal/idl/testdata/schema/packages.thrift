# load: 2fast.thrift dir/type.thrift Mixed-Case.thrift dir/user.thrift
-- 2fast.thrift --
struct A {}
-- dir/type.thrift --
struct B {}
-- Mixed-Case.thrift --
// Not the documentation of the file, but of the struct.
struct C {}
-- dir/user.thrift --
include "one.thrift"
include "a/same.thrift"
include "b/same.thrift"
include "../2fast.thrift"
/** Of the struct. */
struct D { 1: one.X x, 2: same.Y y, 3: same.Z z }
service User extends one.Base {}
-- dir/one.thrift --
/** Of the file: nothing follows directly. */

include "two.thrift"

/** Of the struct. */
struct X {}
service Base { two.Far far() }
-- dir/a/same.thrift --
namespace go same.a
typedef list<Y1> Y
struct Y1 {}
-- dir/b/same.thrift --
namespace go same.b
struct Z {}
-- dir/two.thrift --
namespace go two
struct Far {}
