-- main.thrift --
include "missing.thrift"
include ""
include "sub/b.thrift"
include "sub/b.thrift"
include "../outside.thrift"
include "self.thrift"
struct S { 1: b.Fine a }
-- sub/b.thrift --
include "c.thrift"
struct Fine {}
-- sub/c.thrift --
include "../main.thrift"
-- self.thrift --
include "./self.thrift"
struct Broken { 1: }
