"""Client and server on the Apache Thrift runtime.

There is no Apache compiler here, so what it would generate is put together at
run time: classes with the thrift_spec tuples of `thrift -gen py:dynamic`, and
a client and a processor that make the calls of generated ones in the same
order. Every byte is read and written by Apache's own protocol, TBase,
TApplicationException, transports and server.
"""

import logging
import socket
from typing import Any

from thrift.protocol.TBase import TBase, TExceptionBase, TFrozenBase, TFrozenExceptionBase
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAcceleratedFactory, TBinaryProtocolFactory
from thrift.server.TServer import TThreadedServer
from thrift.Thrift import TApplicationException, TMessageType, TProcessor, TType
from thrift.transport.TSocket import TServerSocket, TSocket
from thrift.transport.TTransport import (
    TBufferedTransportFactory,
    TFramedTransportFactory,
    TTransportException,
)
from thrift.TRecursive import fix_spec

from .rules import Rules, WrongAnswer
from .schema import Field, Kind, Method, Schema, Struct, Type, load

_log = logging.getLogger(__name__)

CONTAINER_LIMIT = 1 << 20
TRANSPORTS = {"bare": TBufferedTransportFactory, "framed": TFramedTransportFactory}


class Classes:
    """The classes for the structs of a schema."""

    def __init__(self, schema: Schema) -> None:
        self._classes: dict[int, Any] = {}
        self.types = {name: self.of(struct) for name, struct in schema.structs.items()}
        for method in schema.methods.values():
            self.of(method.arguments)
            self.of(method.result)
        fix_spec(self._classes.values())

    def of(self, struct: Struct) -> Any:
        """Returns the class for struct, which it makes the first time."""
        found = self._classes.get(id(struct))
        if found is None:
            found = self._classes[id(struct)] = _make_class(struct)
            found.thrift_spec = self._specification(struct)
        return found

    def _specification(self, struct: Struct) -> tuple[Any, ...]:
        """Returns the tuple that Apache's runtime works by: the index is the field id."""
        by_id = {field.id: field for field in struct.fields}
        numbers = range(max(by_id, default=-1) + 1)
        return tuple(self._field(by_id[number]) if number in by_id else None for number in numbers)

    def _field(self, field: Field) -> tuple[Any, ...]:
        return (field.id, field.type.kind.wire, field.name, self._detail(field.type), field.default)

    def _detail(self, use: Type) -> Any:
        if use.struct:
            return [self.of(use.struct), None]
        if use.key and use.element:
            return (*self._pair(use.key), *self._pair(use.element), use.is_immutable)
        if use.element:
            return (*self._pair(use.element), use.is_immutable)
        return {Kind.STRING: "UTF8", Kind.BINARY: "BINARY"}.get(use.kind)

    def _pair(self, use: Type) -> tuple[int, Any]:
        return (use.kind.wire, self._detail(use))


def _make_class(struct: Struct) -> Any:
    if struct.is_exception:
        base = TFrozenExceptionBase if struct.is_immutable else TExceptionBase
    else:
        base = TFrozenBase if struct.is_immutable else TBase
    defaults = {field.name: field.default for field in struct.fields}

    def initialise(self: Any, **values: Any) -> None:
        for name, value in (defaults | values).items():
            setattr(self, name, value)

    members: dict[str, Any] = {"__slots__": tuple(defaults), "__init__": initialise, "__module__": __name__}
    if struct.is_immutable:
        members["__hash__"] = lambda self: hash(tuple(getattr(self, name) for name in self.__slots__))
    return type(struct.name, (base,), members)


class Client:
    """Makes calls on one connection, as a generated client does."""

    def __init__(self, schema: Schema, classes: Classes, protocol: Any) -> None:
        self._schema = schema
        self._classes = classes
        self._protocol = protocol

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Returns the result; raises declared exceptions and TApplicationException."""
        method = self._schema.methods[name]
        self._send(method, arguments)
        return None if method.is_oneway else self._receive(method)

    def close(self) -> None:
        self._protocol.trans.close()

    def _send(self, method: Method, arguments: dict[str, Any]) -> None:
        kind = TMessageType.ONEWAY if method.is_oneway else TMessageType.CALL
        self._protocol.writeMessageBegin(method.name, kind, 0)  # generated clients always send 0
        self._classes.of(method.arguments)(**arguments).write(self._protocol)
        self._protocol.writeMessageEnd()
        self._protocol.trans.flush()

    def _receive(self, method: Method) -> Any:
        try:
            return self._read_reply(method)
        except TTransportException as error:
            raise _connection_error(error) from error

    def _read_reply(self, method: Method) -> Any:
        _, kind, _ = self._protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            failure = TApplicationException()
            failure.read(self._protocol)
            self._protocol.readMessageEnd()
            raise failure
        result = self._classes.of(method.result)()
        result.read(self._protocol)
        self._protocol.readMessageEnd()
        return _outcome(method, result)


def _outcome(method: Method, result: Any) -> Any:
    is_void = True
    for field in method.result.fields:
        value = getattr(result, field.name)
        if field.id == 0:
            is_void = False
            if value is not None:
                return value
        elif value is not None:
            raise value
    if is_void:
        return None
    raise TApplicationException(TApplicationException.MISSING_RESULT, f"{method.name} failed: unknown result")


def _connection_error(error: TTransportException) -> Exception:
    if error.type == TTransportException.TIMED_OUT:
        return TimeoutError(str(error))
    if error.type == TTransportException.END_OF_FILE or isinstance(error.inner, ConnectionError):
        return ConnectionError(str(error))
    return error


class Processor(TProcessor):
    """Reads requests, calls the handler and writes replies, as a generated processor does."""

    def __init__(self, schema: Schema, classes: Classes, handler: object) -> None:
        self._schema = schema
        self._classes = classes
        self._handler = handler

    def process(self, iprot: Any, oprot: Any) -> bool:
        name, _, seqid = iprot.readMessageBegin()
        method = self._schema.methods.get(name)
        if method is None:
            iprot.skip(TType.STRUCT)
            iprot.readMessageEnd()
            unknown = TApplicationException(TApplicationException.UNKNOWN_METHOD, f"Unknown function {name}")
            _write(oprot, name, TMessageType.EXCEPTION, seqid, unknown)
            return False
        arguments = self._classes.of(method.arguments)()
        arguments.read(iprot)
        iprot.readMessageEnd()
        try:
            kind, reply = self._invoke(method, arguments)
        except WrongAnswer as wrong:
            self._answer_wrongly(oprot, method, seqid, wrong.kind)
        else:
            if not method.is_oneway:
                _write(oprot, name, kind, seqid, reply)
        return True

    def _invoke(self, method: Method, arguments: Any) -> tuple[int, Any]:
        """Calls the handler and returns the type and the body of the reply."""
        values = [getattr(arguments, field.name) for field in method.arguments.fields]
        result = self._classes.of(method.result)()
        try:
            success = getattr(self._handler, method.name)(*values)
        except WrongAnswer:
            raise
        except TApplicationException as failure:
            return TMessageType.EXCEPTION, failure
        except Exception as failure:
            declared = self._declared(method, failure)
            if declared is None:
                _log.info("%s failed: %s", method.name, failure)
                return TMessageType.EXCEPTION, TApplicationException(
                    TApplicationException.INTERNAL_ERROR, "Internal error"
                )
            setattr(result, declared.name, failure)
        else:
            if success is not None:
                result.success = success
        return TMessageType.REPLY, result

    def _declared(self, method: Method, failure: Exception) -> Field | None:
        for field in method.result.fields:
            if field.id != 0 and field.type.struct and isinstance(failure, self._classes.of(field.type.struct)):
                return field
        return None

    def _answer_wrongly(self, oprot: Any, method: Method, seqid: int, misbehaviour: int) -> None:
        result = self._classes.of(method.result)(success=1)
        if misbehaviour == 1:
            _write(oprot, method.name, TMessageType.REPLY, seqid + 1000, result)
        elif misbehaviour == 2:
            _write(oprot, method.name + "X", TMessageType.REPLY, seqid, result)
        elif misbehaviour == 3:
            _write(oprot, method.name, TMessageType.CALL, seqid, result)
        elif misbehaviour == 4:
            _write(oprot, method.name, TMessageType.REPLY, seqid, self._classes.of(method.result)())
        else:
            raise TTransportException(TTransportException.END_OF_FILE, "hanging up as told")


def _write(oprot: Any, name: str, kind: int, seqid: int, body: Any) -> None:
    oprot.writeMessageBegin(name, kind, seqid)
    body.write(oprot)
    oprot.writeMessageEnd()
    oprot.trans.flush()


class ListeningSocket(TServerSocket):
    """A server socket that listens from the start, so that its port is known."""

    def __init__(self, idle_timeout: float) -> None:
        self._idle_timeout = idle_timeout
        super().__init__("127.0.0.1", 0, socket_family=socket.AF_INET)
        super().listen()
        self.bound_port = self.handle.getsockname()[1]

    def listen(self) -> None:
        """Does nothing: TServer.serve calls this once more."""

    def accept(self) -> TSocket:
        connection = super().accept()
        connection.setTimeout(self._idle_timeout * 1000)
        return connection


class Runtime:
    """Apache Thrift with the types and methods of one IDL file."""

    application_exception = TApplicationException

    def __init__(self, idl: str, service: str, accelerated: bool = False, extra: Schema | None = None) -> None:
        """Takes what thriftpy2 cannot read from extra."""
        _, schema = load(idl, service)
        self.schema = schema.merge(extra) if extra else schema
        self._accelerated = accelerated
        self._made = Classes(self.schema)
        self.classes = self._made.types

    def connect(self, host: str, port: int, transport: str, timeout: float) -> Client:
        """Returns a client on a new connection; timeout is in seconds and counts for each read."""
        connection = TSocket(host, port)
        connection.setTimeout(timeout * 1000)
        wrapped = TRANSPORTS[transport]().getTransport(connection)
        wrapped.open()
        return Client(self.schema, self._made, self._protocols().getProtocol(wrapped))

    def make_server(self, transport: str, idle_timeout: float) -> tuple[TThreadedServer, int]:
        """Returns a server that implements the rules, and its port."""
        processor = Processor(self.schema, self._made, Rules(self.classes))
        listener = ListeningSocket(idle_timeout)
        server = TThreadedServer(processor, listener, TRANSPORTS[transport](), self._protocols(), daemon=True)
        return server, listener.bound_port

    def _protocols(self) -> Any:
        """Returns a factory for Apache's protocol in Python, or for the one with its C extension."""
        if self._accelerated:
            return TBinaryProtocolAcceleratedFactory(container_length_limit=CONTAINER_LIMIT, fallback=False)
        return TBinaryProtocolFactory(container_length_limit=CONTAINER_LIMIT)
