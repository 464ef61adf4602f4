"""Messages as bytes: header, framing, TTHeader, and what each byte means.

Written from the definition of the Binary protocol and independent of both
runtimes, so that it can send what they would not send, and explain what they
did send.
"""

import socket
import struct as packing
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from .schema import Kind, Schema, Struct, Type

CALL, REPLY, EXCEPTION, ONEWAY = 1, 2, 3, 4
STRICT = 0x80010000
TTHEADER_MAGIC = 0x1000
# What stands inside of a TTHeader. On a multiplexed connection Kitex frames
# messages unless it is told not to, but never its own control packet.
TTHEADER_TRANSPORTS = {"ttheader": "bare", "ttheader-framed": "framed", "mux": "framed", "mux-bare": "bare"}
MESSAGE_LIMIT = 1 << 24
DEPTH_LIMIT = 64

_MESSAGE_TYPES = {CALL: "CALL", REPLY: "REPLY", EXCEPTION: "EXCEPTION", ONEWAY: "ONEWAY"}
_NUMBERS = {
    Kind.BOOL: ">b",
    Kind.I8: ">b",
    Kind.I16: ">h",
    Kind.I32: ">i",
    Kind.I64: ">q",
    Kind.DOUBLE: ">d",
}
_APPLICATION_EXCEPTION = Struct("TApplicationException")


class Incomplete(Exception):
    """The bytes end before the message does."""


@dataclass(frozen=True)
class Message:
    """A message with a body that is already encoded: one struct."""

    name: str
    type: int
    seqid: int
    body: bytes

    def encode(self, transport: str) -> bytes:
        name = self.name.encode()
        header = packing.pack(">II", STRICT | self.type, len(name)) + name + packing.pack(">i", self.seqid)
        payload = header + self.body
        return packing.pack(">I", len(payload)) + payload if transport == "framed" else payload


@dataclass(frozen=True)
class Part:
    """Some bytes that belong together, and what they mean."""

    offset: int
    content: bytes
    meaning: str
    depth: int = 0


class Parser:
    """Walks over the bytes of one message and collects its parts."""

    def __init__(self, content: bytes) -> None:
        self.parts: list[Part] = []
        self._content = content
        self._offset = 0
        self._depth = 0

    def message(self, transport: str, schema: Schema | None = None) -> Message:
        """Parses one message; with a schema the parts have the names of fields."""
        if inner := TTHEADER_TRANSPORTS.get(transport):
            end = self._ttheader()
            if transport == "mux" and self._content[self._offset : self._offset + 2] == b"\x80\x01":
                inner = "bare"
            parsed = self._payload(inner, schema)
            if self._offset != end:
                raise ValueError(f"the message ends at {self._offset}, its TTHeader said {end}")
            return parsed
        return self._payload(transport, schema)

    def _payload(self, transport: str, schema: Schema | None) -> Message:
        if transport == "framed":
            (length,) = self._unpack(">I", "frame: {} bytes follow")
            if length > MESSAGE_LIMIT:
                raise ValueError(f"frame length {length} is over the limit of {MESSAGE_LIMIT}")
        (head,) = self._unpack(">I", None)
        if head & 0xFFFF0000 != STRICT:
            raise ValueError(f"message starts with {head:08x}, not with the version")
        kind = head & 0xFF
        self._describe(4, f"strict Binary, {_MESSAGE_TYPES.get(kind, kind)}")
        name = self._text("method")
        (seqid,) = self._unpack(">i", "sequence id {}")
        start = self._offset
        self._struct(_body(schema, name, kind))
        return Message(name, kind, seqid, self._content[start : self._offset])

    @property
    def length(self) -> int:
        """How many bytes the message takes."""
        return self._offset

    def _ttheader(self) -> int:
        """Parses a TTHeader and returns where the message ends that it announces."""
        length, magic, flags, sequence, size = self._unpack(">IHHiH", None)
        start = self._offset - 14
        for offset, count, meaning in (
            (0, 4, f"TTHeader: {length} bytes follow"),
            (4, 2, "magic"),
            (6, 2, f"flags {flags:#06x}" + (": replies in any order" if flags & 1 else "")),
            (8, 4, f"sequence id {sequence}"),
            (12, 2, f"header info: {4 * size} bytes"),
        ):
            self.parts.append(Part(start + offset, self._content[start + offset : start + offset + count], meaning))
        if magic != TTHEADER_MAGIC:
            raise ValueError(f"magic {magic:04x} instead of {TTHEADER_MAGIC:04x}")
        end = self._offset + 4 * size
        (_, transforms) = self._unpack(">BB", "protocol {}, {} transforms")
        self._take(transforms)
        self._depth = 1
        while self._offset < end:
            self._info(end)
        self._depth = 0
        return start + 4 + length

    def _info(self, end: int) -> None:
        """Parses one block of header info, or the padding behind the last."""
        if self._content[self._offset] == 0:
            padding = end - self._offset
            self._take(padding)
            self._describe(padding, "padding")
            return
        (kind,) = self._unpack(">B", None)
        if kind == 0x11:
            self._describe(1, "access token")
            self._short_text("=")
            return
        form = {0x01: None, 0x10: ">H"}[kind]
        (count,) = self._unpack(">H", None)
        self._describe(3, f"{count} pairs with keys that are {'numbers' if form else 'text'}")
        for _ in range(count):
            if form:
                self._unpack(form, "key {}")
            else:
                self._short_text("key")
            self._short_text("  =")

    def _short_text(self, label: str) -> None:
        (length,) = self._unpack(">H", None)
        content = self._take(length)
        self._describe(2 + length, f"{label} {content.decode()!r}")

    def _take(self, count: int) -> bytes:
        if count < 0 or count > MESSAGE_LIMIT:
            raise ValueError(f"length {count} at offset {self._offset}")
        if self._offset + count > len(self._content):
            raise Incomplete()
        self._offset += count
        return self._content[self._offset - count : self._offset]

    def _describe(self, count: int, meaning: str) -> None:
        start = self._offset - count
        self.parts.append(Part(start, self._content[start : self._offset], meaning, self._depth))

    def _unpack(self, form: str, meaning: str | None) -> tuple[int, ...]:
        size = packing.calcsize(form)
        values = packing.unpack(form, self._take(size))
        if meaning:
            self._describe(size, meaning.format(*values))
        return values

    def _text(self, label: str) -> str:
        content = self._string()
        self._describe(4 + len(content), f"{label} {content.decode()!r}, {_bytes(content)}")
        return content.decode()

    def _string(self) -> bytes:
        (length,) = self._unpack(">i", None)
        return self._take(length)

    def _struct(self, struct: Struct | None) -> None:
        self._enter()
        while True:
            (wire,) = self._unpack(">B", None)
            if wire == 0:
                self._describe(1, f"end of {struct.name}" if struct else "end of struct")
                break
            (number,) = self._unpack(">h", None)
            field = next((field for field in struct.fields if field.id == number), None) if struct else None
            kind = Kind(wire)
            name = f" {field.name}" if field else ""
            self._describe(3, f"field {number}{name}: {kind.name.lower()}")
            self._value(kind, field.type if field else None)
        self._depth -= 1

    def _value(self, kind: Kind, use: Type | None) -> None:
        if kind is Kind.STRUCT:
            self._struct(use.struct if use else None)
        elif kind is Kind.MAP:
            self._map(use)
        elif kind in (Kind.LIST, Kind.SET):
            self._list(use)
        elif kind is Kind.STRING:
            content = self._string()
            self._describe(4 + len(content), _string_meaning(content, use))
        elif kind is Kind.UUID:
            self._take(16)
            self._describe(16, f"= {uuid.UUID(bytes=self._content[self._offset - 16 : self._offset])}")
        else:
            self._unpack(_NUMBERS[kind], "= {}")

    def _map(self, use: Type | None) -> None:
        key, element, count = self._unpack(">BBi", None)
        self._enter()
        self._describe(6, f"{count} pairs of {_name(key)} and {_name(element)}")
        for _ in range(count):
            self._value(Kind(key), use.key if use else None)
            self._value(Kind(element), use.element if use else None)
        self._depth -= 1

    def _list(self, use: Type | None) -> None:
        element, count = self._unpack(">Bi", None)
        self._enter()
        self._describe(5, f"{count} elements of {_name(element)}")
        for _ in range(count):
            self._value(Kind(element), use.element if use else None)
        self._depth -= 1

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise ValueError(f"nested deeper than {DEPTH_LIMIT}")


def _name(wire: int) -> str:
    """Returns the name of an element type; runtimes may write 0 for an empty container."""
    return Kind(wire).name.lower() if wire else "nothing"


def _string_meaning(content: bytes, use: Type | None) -> str:
    if use and use.kind is Kind.BINARY:
        return _bytes(content)
    return f"= {content.decode(errors='backslashreplace')!r}, {_bytes(content)}"


def _bytes(content: bytes) -> str:
    return "1 byte" if len(content) == 1 else f"{len(content)} bytes"


def _body(schema: Schema | None, name: str, kind: int) -> Struct | None:
    if kind == EXCEPTION:
        return _APPLICATION_EXCEPTION
    if schema is None or name not in schema.methods:
        return None
    method = schema.methods[name]
    return method.result if kind == REPLY else method.arguments


def receive(connection: socket.socket, transport: str) -> Message | None:
    """Reads one message; None if the peer closes the connection before it begins."""
    content = b""
    while True:
        parser = Parser(content)
        try:
            return parser.message(transport)
        except Incomplete:
            chunk = connection.recv(65536)
        if not chunk:
            if content:
                raise ConnectionError(f"connection closed in the middle of a message, after {content.hex(' ')}")
            return None
        content += chunk


def split(content: bytes, transport: str) -> Iterator[bytes]:
    """Yields the messages that content holds one behind the other."""
    while content:
        parser = Parser(content)
        parser.message(transport)
        yield content[: parser.length]
        content = content[parser.length :]


def annotate(content: bytes, transport: str, schema: Schema) -> str:
    """Returns the bytes of one message as text: hex, then "#", the offset and the meaning."""
    parser = Parser(content)
    parser.message(transport, schema)
    lines = []
    for part in parser.parts:
        rows = [part.content[start : start + 16] for start in range(0, len(part.content), 16)]
        meanings = ["  " * part.depth + part.meaning] + [""] * (len(rows) - 1)
        for index, (row, meaning) in enumerate(zip(rows, meanings, strict=True)):
            lines.append(f"{row.hex(' '):<47}  # {part.offset + 16 * index:04x}  {meaning}".rstrip())
    return "\n".join(lines) + "\n"
