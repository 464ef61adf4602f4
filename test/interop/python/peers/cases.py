"""Runs the cases of cases.json against a server and compares what comes back.

A case is one step or a list of steps. A step calls a method and says what has
to follow: `result` (nothing for void), `throws` (a declared exception), or
`fails` (the type of a TApplicationException); servers named in `closes` close
the connection instead of failing. `eventually` repeats a step until it holds,
which is how the effect of a oneway method is seen. Peers named in `without`
cannot take part, as client or as server.

A raw case sends a message that no runtime would send, and gives the reply: a
`body`, the type of an `exception`, or `nothing`. Either leaves the connection
usable, which a ping shows. The body of the request is hex, or a list of pairs
of hex and how often it occurs.
"""

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TMemoryBuffer

from . import values
from .message import CALL, EXCEPTION, REPLY, Message, receive
from .schema import Method, Schema

EVENTUALLY_SECONDS = 5.0
PING = Message("ping", CALL, 4711, b"\0")


class Client(Protocol):
    """A connection of one of the runtimes."""

    def call(self, name: str, arguments: dict[str, Any]) -> Any: ...

    def close(self) -> None: ...


class Runtime(Protocol):
    """One of the runtimes with the types of an IDL file."""

    schema: Schema
    classes: dict[str, Any]
    application_exception: Any

    def connect(self, host: str, port: int, transport: str, timeout: float) -> Client: ...


@dataclass(frozen=True)
class Server:
    """The server under test: where it is, and who it is, as `closes` and `without` name it."""

    name: str
    host: str
    port: int
    transport: str
    timeout: float


@dataclass(frozen=True)
class Outcome:
    """What became of one case."""

    case: str
    ok: bool
    detail: str

    def line(self) -> str:
        return json.dumps({"case": self.case, "ok": self.ok, "detail": self.detail}, ensure_ascii=False)


class Difference(Exception):
    """Something else came back than was expected."""


class Runner:
    """Runs cases on one connection, which is only replaced when the server is expected to close it."""

    def __init__(self, runtime: Runtime, name: str, server: Server, unique: str) -> None:
        self._runtime = runtime
        self._peers = {name, server.name}
        self._server = server
        self._unique = unique
        self._client: Client | None = None

    def run(self, cases: dict[str, Any], wanted: str) -> Iterator[Outcome]:
        """Yields an outcome for each case that is wanted ("all" or a name) and that both peers can take part in."""
        for case in cases["cases"]:
            if self._takes_part(case, wanted):
                yield self._outcome(case, self._run_case)
        for case in cases["raw"]:
            if self._takes_part(case, wanted):
                yield self._outcome(case, self._run_raw)
        self._disconnect()

    def _takes_part(self, case: dict[str, Any], wanted: str) -> bool:
        return wanted in ("all", case["name"]) and not self._peers & set(case.get("without", ()))

    def _outcome(self, case: dict[str, Any], run: Any) -> Outcome:
        try:
            return Outcome(case["name"], True, run(case))
        except Exception as error:  # whatever went wrong is the outcome
            self._disconnect()
            return Outcome(case["name"], False, f"{type(error).__name__}: {error}")

    def _connected(self) -> Client:
        if self._client is None:
            server = self._server
            self._client = self._runtime.connect(server.host, server.port, server.transport, server.timeout)
        return self._client

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _run_case(self, case: dict[str, Any]) -> str:
        details = [self._run_step(values.expand(step, self._unique)) for step in case.get("steps", [case])]
        return "; ".join(details)

    def _run_step(self, step: dict[str, Any]) -> str:
        end = time.monotonic() + EVENTUALLY_SECONDS
        while True:
            try:
                return self._call(step)
            except Difference:
                if not step.get("eventually") or time.monotonic() > end:
                    raise
            time.sleep(0.01)

    def _call(self, step: dict[str, Any]) -> str:
        method = self._runtime.schema.methods[step["method"]]
        arguments = values.build_fields(method.arguments, step.get("arguments", {}), self._runtime.classes)
        failure: Exception | None = None
        result = None
        try:
            result = self._connected().call(method.name, arguments)
        except (ConnectionError, EOFError) as error:
            self._disconnect()
            if self._server.name in step.get("closes", ()):
                return "the server closed the connection, as expected"
            raise Difference(f"the server closed the connection: {error}") from error
        except Exception as error:
            failure = error
        return self._compare(method, step, result, failure)

    def _compare(self, method: Method, step: dict[str, Any], result: Any, failure: Exception | None) -> str:
        if "throws" in step:
            return self._compare_exception(method, step["throws"], failure)
        if "fails" in step:
            return self._compare_failure(step["fails"], failure)
        if failure is not None:
            raise failure
        success = next((field for field in method.result.fields if field.id == 0), None)
        if success is None:
            return _same(None, result)
        return _same(values.expected(success.type, step["result"]), values.comparable(success.type, result))

    def _compare_exception(self, method: Method, throws: dict[str, Any], failure: Exception | None) -> str:
        ((name, members),) = throws.items()
        if not isinstance(failure, self._runtime.classes[name]):
            raise Difference(f"expected {name}, got {failure!r}")
        use = next(f.type for f in method.result.fields if f.type.struct and f.type.struct.name == name)
        return f"{name} " + _same(values.expected(use, members), values.comparable(use, failure))

    def _compare_failure(self, kind: int, failure: Exception | None) -> str:
        if not isinstance(failure, self._runtime.application_exception):
            raise Difference(f"expected a TApplicationException, got {failure!r}")
        _same(kind, failure.type)
        return f"TApplicationException {kind}: {failure}"

    def _run_raw(self, case: dict[str, Any]) -> str:
        request = case["raw"]
        message = Message(
            request["method"], request.get("type", CALL), request.get("seqid", 1), _raw_body(request["body"])
        )
        server = self._server
        with socket.create_connection((server.host, server.port), server.timeout) as connection:
            connection.sendall(message.encode(server.transport))
            detail = _compare_raw(
                case, message, receive(connection, server.transport) if "nothing" not in case else None
            )
            connection.sendall(PING.encode(server.transport))
            _same(Message("ping", REPLY, PING.seqid, b"\0"), receive(connection, server.transport))
        return detail


def _raw_body(notation: Any) -> bytes:
    pairs = [(notation, 1)] if isinstance(notation, str) else notation
    return b"".join(bytes.fromhex(content) * count for content, count in pairs)


def _compare_raw(case: dict[str, Any], request: Message, reply: Message | None) -> str:
    if "nothing" in case:
        return "no reply"
    if reply is None:
        raise Difference("the server closed the connection without a reply")
    if "body" in case:
        _same(Message(request.name, REPLY, request.seqid, bytes.fromhex(case["body"])), reply)
        return reply.body.hex(" ")
    _same((EXCEPTION, request.seqid), (reply.type, reply.seqid))
    failure = TApplicationException()
    failure.read(TBinaryProtocol(TMemoryBuffer(reply.body)))
    _same(case["exception"], failure.type)
    return f"TApplicationException {failure.type}: {failure}"


def _same(expected: Any, actual: Any) -> str:
    if expected != actual:
        raise Difference(f"expected {_short(expected)}, got {_short(actual)}")
    return _short(actual)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}... ({len(text)} characters)"
