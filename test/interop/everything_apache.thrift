/**
 * What only the Apache runtime can speak of the two Python peers: thriftpy2
 * 0.7.1 neither reads "uuid" nor holds containers as keys. The Apache peer has
 * these types written out by hand, see python/peers/apache_only.py.
 */
namespace go everythingapache
namespace py everything_apache

struct Identified {
  1: required uuid id
  2: uuid owner
  3: optional uuid parent
  4: list<uuid> members
  5: set<uuid> unique
  6: map<uuid, string> names
  7: map<string, uuid> byName
}

struct ContainerKeys {
  1: map<list<i32> (python.immutable = ""), string> byList
  2: set<list<string> (python.immutable = "")> uniqueLists
}

service Apache {
  /** Returns every bit flipped. */
  uuid flipUuid(1: uuid value)

  /** The nil UUID. */
  uuid nilUuid()

  Identified echoIdentified(1: Identified value)

  ContainerKeys echoContainerKeys(1: ContainerKeys value)
}
