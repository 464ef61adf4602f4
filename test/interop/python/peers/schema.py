"""What an IDL file says, in one form for both runtimes.

thriftpy2 parses the file; Apache Thrift has no parser at run time, so its
classes are built from this form.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Any

import thriftpy2
from thriftpy2.thrift import TException, TType


class Kind(Enum):
    """The kinds of a type; the value is the number on the wire."""

    BOOL = 2
    I8 = 3
    DOUBLE = 4
    I16 = 6
    I32 = 8
    I64 = 10
    STRING = 11
    STRUCT = 12
    MAP = 13
    SET = 14
    LIST = 15
    UUID = 16
    BINARY = -11  # 11 on the wire, as STRING

    @property
    def wire(self) -> int:
        return abs(self.value)


@dataclass
class Struct:
    """A struct, union or exception, or the arguments or the result of a method."""

    name: str
    fields: list["Field"] = field(default_factory=list)
    is_exception: bool = False
    is_immutable: bool = False

    def field(self, name: str) -> "Field":
        return next(field for field in self.fields if field.name == name)


@dataclass(frozen=True)
class Type:
    """A use of a type. Enums are I32."""

    kind: Kind
    key: "Type | None" = None
    element: "Type | None" = None
    struct: Struct | None = None
    is_immutable: bool = False


@dataclass(frozen=True)
class Field:
    id: int
    name: str
    type: Type
    default: Any = None


@dataclass(frozen=True)
class Method:
    name: str
    arguments: Struct
    result: Struct
    is_oneway: bool = False


@dataclass
class Schema:
    """Types and methods by name. Services of one schema do not share method names."""

    structs: dict[str, Struct] = field(default_factory=dict)
    methods: dict[str, Method] = field(default_factory=dict)

    def merge(self, other: "Schema") -> "Schema":
        return Schema(self.structs | other.structs, self.methods | other.methods)


def load(path: str, service: str) -> tuple[ModuleType, Schema]:
    """Parses the file at path with thriftpy2 and returns its module and the schema of one service."""
    module = thriftpy2.load(path)
    return module, _Translation().schema(module, getattr(module, service))


def payload_classes(module: ModuleType) -> Iterator[type]:
    """Yields the classes for structs, unions and exceptions of module and of what it includes."""
    for value in vars(module).values():
        if isinstance(value, ModuleType) and hasattr(value, "__thrift_file__"):
            yield from payload_classes(value)
        elif isinstance(value, type) and hasattr(value, "thrift_spec"):
            yield value


class _Translation:
    """Turns the specifications that thriftpy2 attaches to its classes into a Schema."""

    def __init__(self) -> None:
        self._structs: dict[type, Struct] = {}

    def schema(self, module: ModuleType, service: Any) -> Schema:
        schema = Schema()
        for payload in payload_classes(module):
            struct = self._struct(payload)
            schema.structs[struct.name] = struct
        for name in service.thrift_services:
            schema.methods[name] = self._method(service, name)
        return schema

    def _method(self, service: Any, name: str) -> Method:
        result = getattr(service, name + "_result")
        arguments = self._struct(getattr(service, name + "_args"))
        return Method(name, arguments, self._struct(result), result.oneway)

    def _struct(self, payload: Any) -> Struct:
        if payload in self._structs:
            return self._structs[payload]
        annotations = getattr(payload, "__thrift_annotations__", {})
        struct = Struct(
            payload.__name__,
            is_exception=issubclass(payload, TException),
            is_immutable="python.immutable" in annotations,
        )
        self._structs[payload] = struct  # before its fields, which may lead back here
        defaults = dict(payload.default_spec)
        for number, (ttype, name, *rest) in payload.thrift_spec.items():
            detail = rest[0] if len(rest) == 2 else None
            struct.fields.append(Field(number, name, self._type(ttype, detail), defaults[name]))
        return struct

    def _type(self, ttype: int, detail: Any) -> Type:
        if ttype == TType.BINARY:
            return Type(Kind.BINARY)
        kind = Kind(ttype)
        if kind is Kind.STRUCT:
            return Type(kind, struct=self._struct(detail))
        if kind is Kind.MAP:
            return Type(kind, key=self._nested(detail[0]), element=self._nested(detail[1]))
        if kind in (Kind.LIST, Kind.SET):
            return Type(kind, element=self._nested(detail))
        return Type(kind)

    def _nested(self, spec: Any) -> Type:
        """Elements of containers are a number, or a number with its detail."""
        return self._type(*spec) if isinstance(spec, tuple) else self._type(spec, None)
