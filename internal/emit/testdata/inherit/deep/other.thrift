namespace go inherit.deep.thrift

struct Deep { 1: i32 id }
