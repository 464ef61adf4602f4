"""The notation of cases.json, to and from objects of a runtime.

A value is written as JSON has it: numbers, strings, true and false, structs as
objects by field name, lists as arrays; maps are arrays of pairs. What JSON
cannot say is an object with one member:

    {"$hex": "00 ff"}          binary
    {"$double": "NaN"}         also "Infinity", "-Infinity", "-0"
    {"$set": [...]}            a set
    {"$range": [a, n, step]}   n numbers from a on, as a list
    {"$repeat": [value, n]}    a string n times over, or a list of n equal values

The string "$unique" stands for a text that no other run uses. A field that is
not there is not set; a reply then has the default of the IDL, or nothing.
"""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from .schema import Kind, Struct, Type

Build = Callable[..., Any]


def expand(notation: Any, unique: str) -> Any:
    """Returns notation with $range, $repeat and $unique worked out."""
    if notation == "$unique":
        return unique
    if isinstance(notation, list):
        return [expand(element, unique) for element in notation]
    if not isinstance(notation, dict):
        return notation
    if "$range" in notation:
        first, count, step = notation["$range"]
        return [first + index * step for index in range(count)]
    if "$repeat" in notation:
        value, count = notation["$repeat"]
        return value * count if isinstance(value, str) else [expand(value, unique)] * count
    return {name: expand(member, unique) for name, member in notation.items()}


def build(use: Type, notation: Any, classes: Mapping[str, Build]) -> Any:
    """Returns the object of the runtime whose classes are given."""
    kind = use.kind
    if use.struct:
        return classes[use.struct.name](**build_fields(use.struct, notation, classes))
    if use.key and use.element:
        return {build(use.key, key, classes): build(use.element, element, classes) for key, element in notation}
    if use.element:
        elements = [build(use.element, element, classes) for element in _elements(notation)]
        if kind is Kind.SET:
            return set(elements)
        return tuple(elements) if use.is_immutable else elements
    if kind is Kind.BINARY:
        return bytes.fromhex(notation["$hex"])
    if kind is Kind.UUID:
        return uuid.UUID(notation)
    return _double(notation) if kind is Kind.DOUBLE else notation


def build_fields(struct: Struct, notation: Mapping[str, Any], classes: Mapping[str, Build]) -> dict[str, Any]:
    """Returns the fields that notation sets, for a constructor."""
    return {name: build(struct.field(name).type, member, classes) for name, member in notation.items()}


def expected(use: Type, notation: Any) -> Any:
    """Returns the comparable form of what notation stands for; see comparable."""
    if use.struct:
        return _expected_struct(use.struct, notation)
    if use.key and use.element:
        pairs = [(expected(use.key, key), expected(use.element, element)) for key, element in notation]
        return sorted(pairs, key=repr)
    if use.element:
        elements = [expected(use.element, element) for element in _elements(notation)]
        return sorted(elements, key=repr) if use.kind is Kind.SET else elements
    if use.kind is Kind.BINARY:
        return bytes.fromhex(notation["$hex"])
    return repr(_double(notation)) if use.kind is Kind.DOUBLE else notation


def _expected_struct(struct: Struct, notation: Mapping[str, Any]) -> dict[str, Any]:
    fields = {}
    for field in struct.fields:
        if field.name in notation:
            fields[field.name] = expected(field.type, notation[field.name])
        elif field.default is not None:
            fields[field.name] = comparable(field.type, field.default)
    return fields


def comparable(use: Type, value: Any) -> Any:
    """Returns value in a form that can be compared with == and printed.

    Sets and maps are sorted lists, structs are dictionaries of the fields that
    are set, and doubles are text, so that NaN equals itself and -0 does not
    equal 0. Values of a type that does not fit are an error.
    """
    if use.struct:
        return {
            field.name: comparable(field.type, getattr(value, field.name))
            for field in use.struct.fields
            if getattr(value, field.name) is not None
        }
    if use.key and use.element:
        pairs = [(comparable(use.key, key), comparable(use.element, element)) for key, element in value.items()]
        return sorted(pairs, key=repr)
    if use.element:
        elements = [comparable(use.element, element) for element in value]
        return sorted(elements, key=repr) if use.kind is Kind.SET else elements
    return _comparable_scalar(use.kind, value)


def _comparable_scalar(kind: Kind, value: Any) -> Any:
    wanted = {Kind.BOOL: bool, Kind.DOUBLE: float, Kind.STRING: str, Kind.BINARY: bytes, Kind.UUID: uuid.UUID}
    if not isinstance(value, wanted.get(kind, int)):
        raise TypeError(f"{value!r} is not a {kind.name}")
    if kind is Kind.DOUBLE:
        return repr(value)
    return str(value) if kind is Kind.UUID else value


def _elements(notation: Any) -> list[Any]:
    return notation["$set"] if isinstance(notation, dict) else notation


def _double(notation: Any) -> float:
    return float(notation["$double"] if isinstance(notation, dict) else notation)
