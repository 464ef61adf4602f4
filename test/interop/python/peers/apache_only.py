"""everything_apache.thrift by hand: what thriftpy2 can neither parse nor hold."""

from .schema import Field, Kind, Method, Schema, Struct, Type

_I32 = Type(Kind.I32)
_STRING = Type(Kind.STRING)
_UUID = Type(Kind.UUID)

_IDENTIFIED = Struct(
    "Identified",
    [
        Field(1, "id", _UUID),
        Field(2, "owner", _UUID),
        Field(3, "parent", _UUID),
        Field(4, "members", Type(Kind.LIST, element=_UUID)),
        Field(5, "unique", Type(Kind.SET, element=_UUID)),
        Field(6, "names", Type(Kind.MAP, key=_UUID, element=_STRING)),
        Field(7, "byName", Type(Kind.MAP, key=_STRING, element=_UUID)),
    ],
)

_CONTAINER_KEYS = Struct(
    "ContainerKeys",
    [
        Field(1, "byList", Type(Kind.MAP, key=Type(Kind.LIST, element=_I32, is_immutable=True), element=_STRING)),
        Field(2, "uniqueLists", Type(Kind.SET, element=Type(Kind.LIST, element=_STRING, is_immutable=True))),
    ],
)


def _method(name: str, argument: Type | None, result: Type) -> Method:
    arguments = [Field(1, "value", argument)] if argument else []
    return Method(
        name,
        arguments=Struct(name + "_args", arguments),
        result=Struct(name + "_result", [Field(0, "success", result)]),
    )


def schema() -> Schema:
    """Returns what service Apache offers."""
    structs = (_IDENTIFIED, _CONTAINER_KEYS)
    methods = (
        _method("flipUuid", _UUID, _UUID),
        _method("nilUuid", None, _UUID),
        _method("echoIdentified", Type(Kind.STRUCT, struct=_IDENTIFIED), Type(Kind.STRUCT, struct=_IDENTIFIED)),
        _method(
            "echoContainerKeys", Type(Kind.STRUCT, struct=_CONTAINER_KEYS), Type(Kind.STRUCT, struct=_CONTAINER_KEYS)
        ),
    )
    return Schema({struct.name: struct for struct in structs}, {method.name: method for method in methods})
