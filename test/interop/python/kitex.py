"""Frames of the real Kitex: what its client and its server say to each other.

Both are the program that test/kitex builds; the Makefile puts it into bin. The
order of the pairs in a TTHeader is random in Kitex, as is that in maps, so two
captures of the same call differ; same() compares what does not.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from peer import FOLDER
from peers import message
from peers.schema import load
from proxy import RecordingProxy

PROGRAM = FOLDER.parent.parent / "bin" / "kitex-peer"
VERSION = "0.16.3"
TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True)
class Call:
    """One case to capture; plain peers lack the TTHeader handlers, which Kitex does not install by itself."""

    transport: str
    case: str
    cases: str = "cases.json"
    plain: bool = False
    # The name of the files, if it is not that of the case.
    name: str = ""
    # Arguments for the server and for the client.
    server: tuple[str, ...] = ()
    client: tuple[str, ...] = ()
    # The server is told to stop while the call runs, or behind it.
    shutdown: str = ""


_BODIES = ("void", "i32_pattern", "struct_all_fields", "containers_of_one", "exception_first", "exception_undeclared", "oneway_alone")
_METADATA = ("metadata_both_ways", "business_error", "business_error_plain", "crash")


def calls(bare_cases: tuple[str, ...]) -> Iterator[Call]:
    """Yields everything that is captured."""
    for case in bare_cases:
        yield Call("bare", case)
    for case in _BODIES:
        yield Call("framed", case)
    for transport in ("ttheader", "ttheader-framed", "mux"):
        for case in _BODIES:
            yield Call(transport, case)
        for case in _METADATA:
            yield Call(transport, case, "courier.json")
        yield Call(transport, "void", name="timeout", client=("-timeout", "1500ms"))
        yield Call(transport, "void", name="unknown_service", server=("-services", "courier"))
    for transport in ("ttheader", "mux"):
        for case in ("void", "exception_first"):
            yield Call(transport, case, plain=True)
        yield Call(transport, "metadata_both_ways", "courier.json", plain=True)
    for case in ("void", "exception_first"):
        yield Call("mux-bare", case)
    yield Call("ttheader", "calls_while_stopping", "courier.json", name="shutdown", shutdown="during")
    yield Call("mux", "void", name="shutdown", shutdown="behind")


@contextmanager
def _serving(call: Call) -> Iterator[tuple[subprocess.Popen[str], int]]:
    arguments = [str(PROGRAM), "serve", "-transport", call.transport, f"-handlers={not call.plain}", *call.server]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server, json.loads(server.stdout.readline())["port"]
        finally:
            _end(server)


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.close()
    process.wait(TIMEOUT_SECONDS)


def _record(call: Call) -> tuple[bytes, bytes]:
    with _serving(call) as (server, port):
        proxy = RecordingProxy(port)
        arguments = [str(PROGRAM), "call", "-transport", call.transport, f"-handlers={not call.plain}"]
        arguments += ["-port", str(proxy.port), "-cases", str(FOLDER / call.cases), "-case", call.case]
        arguments += ["-server", "kitex-plain" if call.plain else "kitex", "-linger", *call.client]
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout
            if call.shutdown == "during":
                proxy.wait_for_request()
                assert server.stdin
                server.stdin.close()
            line = client.stdout.readline()
            if call.shutdown == "behind":
                _end(server)
            _end(client)
        if not json.loads(line)["ok"] and not call.name:
            raise RuntimeError(f"kitex {call}: {line}")
        return proxy.finish()


def capture(bare_cases: tuple[str, ...]) -> Iterator[tuple[str, str, str, str]]:
    """Yields peer, transport, file name and text of each frame."""
    if not PROGRAM.exists():
        sys.exit('capture: run "make bin/kitex-peer" at the root of the repository first')
    _, schema = load(str(FOLDER / "everything.thrift"), "Everything")
    schema = schema.merge(load(str(FOLDER / "courier.thrift"), "Courier")[1])
    for call in calls(bare_cases):
        peer = "kitex-plain" if call.plain else "kitex"
        handlers = "without the TTHeader handlers" if call.plain else "with the TTHeader handlers"
        name = call.name or call.case
        requests, replies = _record(call)
        for direction, said in (("request", requests), ("reply", replies)):
            frames = list(message.split(said, call.transport))
            # Of several, the last is what the name of the call is about.
            frame = frames[-1] if frames else None
            if frame and not (call.shutdown and direction == "request"):
                origin = f"Kitex {VERSION}, {call.transport}"
                if call.transport in message.TTHEADER_TRANSPORTS:
                    origin += f", {handlers}"
                text = message.annotate(frame, call.transport, schema)
                yield peer, call.transport, f"{name}.{direction}.hex", f"# {origin}: {direction} of {name}\n{text}"


def same(one: str, other: str) -> bool:
    """Reports whether two captures consist of the same parts, in whatever order maps have them."""
    return _parts(one) == _parts(other)


def _parts(text: str) -> list[tuple[str, str]]:
    """Returns bytes and meaning of each line, without the title and the offsets."""
    return sorted((line.split("#")[0], line.split("#")[-1][7:]) for line in text.splitlines()[1:])
