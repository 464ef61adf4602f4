"""Client and server on thriftpy2."""

from typing import Any

from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TApplicationException, TClient, TMessageType, TProcessor
from thriftpy2.transport import (
    TBufferedTransportFactory,
    TFramedTransportFactory,
    TServerSocket,
    TTransportException,
)

from .rules import Rules, WrongAnswer
from .schema import load, payload_classes

TRANSPORTS: dict[str, Any] = {"bare": TBufferedTransportFactory, "framed": TFramedTransportFactory}


class Client:
    """Makes calls on one connection."""

    def __init__(self, client: TClient) -> None:
        self._client = client

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Returns the result; raises declared exceptions and TApplicationException."""
        try:
            return getattr(self._client, name)(**arguments)
        except TTransportException as error:
            raise ConnectionError(str(error)) from error

    def close(self) -> None:
        self._client.close()


class _ToldToAnswerWrongly(Exception):
    def __init__(self, name: str, seqid: int, result: Any, misbehaviour: int) -> None:
        super().__init__(name)
        self.name = name
        self.seqid = seqid
        self.result = result
        self.misbehaviour = misbehaviour


class Processor(TProcessor):
    """thriftpy2's processor, which answers wrongly if the handler asks for it."""

    def process_in(self, iprot: Any) -> tuple[str, int, Any, Any]:
        name, seqid, result, call = super().process_in(iprot)
        if call is None:
            return name, seqid, result, None

        def call_or_tell() -> Any:
            try:
                return call()
            except WrongAnswer as wrong:
                raise _ToldToAnswerWrongly(name, seqid, result, wrong.kind) from wrong

        return name, seqid, result, call_or_tell

    def process(self, iprot: Any, oprot: Any) -> None:
        try:
            super().process(iprot, oprot)
        except _ToldToAnswerWrongly as told:
            self._answer_wrongly(oprot, told)

    def _answer_wrongly(self, oprot: Any, told: _ToldToAnswerWrongly) -> None:
        told.result.success = 1
        if told.misbehaviour == 1:
            self.send_result(oprot, told.name, told.result, told.seqid + 1000)
        elif told.misbehaviour == 2:
            self.send_result(oprot, told.name + "X", told.result, told.seqid)
        elif told.misbehaviour == 3:
            oprot.write_message_begin(told.name, TMessageType.CALL, told.seqid)
            told.result.write(oprot)
            oprot.write_message_end()
            oprot.trans.flush()
        elif told.misbehaviour == 4:
            told.result.success = None
            self.send_result(oprot, told.name, told.result, told.seqid)
        else:
            raise TTransportException(TTransportException.END_OF_FILE, "hanging up as told")


class ListeningSocket(TServerSocket):
    """A server socket that listens from the start, so that its port is known."""

    def __init__(self, idle_timeout: float) -> None:
        super().__init__("127.0.0.1", 0, client_timeout=int(idle_timeout * 1000))
        super().listen()
        assert self.sock is not None
        self.bound_port = int(self.sock.getsockname()[1])

    def listen(self) -> None:
        """Does nothing: TServer.serve calls this once more."""


class Runtime:
    """thriftpy2 with the types and methods of one IDL file."""

    application_exception = TApplicationException

    def __init__(self, idl: str, service: str) -> None:
        module, self.schema = load(idl, service)
        self.classes = {payload.__name__: payload for payload in payload_classes(module)}
        self._service = getattr(module, service)

    def connect(self, host: str, port: int, transport: str, timeout: float) -> Client:
        """Returns a client on a new connection; timeout is in seconds and counts for each read."""
        client = make_client(
            self._service,
            host,
            port,
            proto_factory=TBinaryProtocolFactory(),
            trans_factory=TRANSPORTS[transport](),
            timeout=int(timeout * 1000),
        )
        return Client(client)

    def make_server(self, transport: str, idle_timeout: float) -> tuple[TThreadedServer, int]:
        """Returns a server that implements the rules, and its port."""
        listener = ListeningSocket(idle_timeout)
        server = TThreadedServer(
            Processor(self._service, Rules(self.classes)),
            listener,
            itrans_factory=TRANSPORTS[transport](),
            iprot_factory=TBinaryProtocolFactory(),
            daemon=True,
        )
        return server, listener.bound_port
