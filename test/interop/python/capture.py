"""Captures golden frames from real peers.

    capture.py                     rewrites golden/ and the copies for the core tests
    capture.py --check             compares instead; exit code 1 if something differs
    capture.py --peer kitex        only that of Kitex, or "python"

For each runtime and transport, client and server of the runtime talk through
a recording proxy. What they said is written as <runtime>/<transport>/
<case>.<request|reply>.hex: bytes in hex, and behind a "#" the offset and the
meaning. To read such a file, drop everything from "#" to the end of the line.
"""

import argparse
import importlib.metadata
import json
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kitex
from peer import FOLDER, make_runtime
from peers import cases, message
from proxy import RecordingProxy

VERSIONS = {"thriftpy2": "thriftpy2", "apache": "thrift"}
TITLES = {"thriftpy2": "thriftpy2", "apache": "Apache Thrift for Python"}
CORE_FOLDER = FOLDER.parent.parent / "internal" / "wire" / "testdata" / "peers"
TIMEOUT_SECONDS = 10.0

# What the core tests read: every type of message, and a body of some size.
CORE_CASES = (
    "void",
    "i32_pattern",
    "struct_all_fields",
    "containers_of_one",
    "exception_first",
    "oneway_alone",
    "raw_unknown_method",
)
# What only Apache Thrift can speak.
APACHE_CASES = ("uuid_everywhere", "containers_as_keys")
# Every shape, once bare; framing adds a length and nothing else. Sets have one
# element in them, so that the order is the same every time.
BARE_CASES = (
    *CORE_CASES,
    "inherited_typedef_and_enum",
    "string_of_all_utf8_lengths",
    "struct",
    "struct_optional_fields_are_absent",
    "defaults_of_the_server",
    "containers_empty",
    "union_of_structs",
    "recursive_struct",
    "arguments_out_of_order",
    "exception_second",
    "exception_void_not_thrown",
    "exception_undeclared",
    *APACHE_CASES,
)


def capture(runtime_name: str, transport: str, content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields file name and text of each frame of one runtime over one transport."""
    runtime = make_runtime(runtime_name, str(FOLDER / "everything.thrift"))
    server, port = runtime.make_server(transport, TIMEOUT_SECONDS)
    threading.Thread(target=server.serve, daemon=True).start()
    origin = f"{TITLES[runtime_name]} {importlib.metadata.version(VERSIONS[runtime_name])}, {transport}"
    for name in BARE_CASES if transport == "bare" else CORE_CASES:
        proxy = RecordingProxy(port)
        target = cases.Server(runtime_name, "127.0.0.1", proxy.port, transport, TIMEOUT_SECONDS)
        outcomes = list(cases.Runner(runtime, runtime_name, target, "golden").run(content, name))
        if not outcomes:
            proxy.cancel()
            continue
        if not outcomes[0].ok:
            raise RuntimeError(f"{runtime_name} {transport} {name}: {outcomes[0].detail}")
        requests, replies = proxy.finish()
        for direction, said in (("request", requests), ("reply", replies)):
            frame = next(message.split(said, transport), None)
            is_genuine = not (name.startswith("raw_") and direction == "request")
            if frame and is_genuine and not (direction == "reply" and name.startswith("oneway")):
                text = message.annotate(frame, transport, runtime.schema)
                yield f"{name}.{direction}.hex", f"# {origin}: {direction} of {name}\n{text}"


def write(files: dict[Path, str], check: bool) -> int:
    """Writes files, or reports those that differ; returns the exit code."""
    differing = [
        path for path, text in files.items() if not path.exists() or not kitex.same(path.read_text(encoding="utf-8"), text)
    ]
    if check:
        for path in differing:
            print(f"capture: {path} differs from what the peer says now", file=sys.stderr)
        return 1 if differing else 0
    for path in differing:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
    print(f"capture: {len(files)} frames, {len(differing)} of them new or changed")
    return 0


def main() -> int:
    logging.disable(logging.CRITICAL)  # handlers that are meant to fail
    parser = argparse.ArgumentParser(description="Captures golden frames from real peers.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--peer", choices=("all", "python", "kitex"), default="all", help="whose frames")
    options = parser.parse_args()
    files: dict[Path, str] = {}
    if options.peer != "kitex":
        files |= python_frames()
    if options.peer != "python":
        files |= kitex_frames()
    return write(files, options.check)


def python_frames() -> dict[Path, str]:
    content = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
    files: dict[Path, str] = {}
    for runtime in VERSIONS:
        for transport in ("bare", "framed"):
            for name, text in capture(runtime, transport, content):
                files[FOLDER / "golden" / runtime / transport / name] = text
                if name.split(".")[0] in CORE_CASES:
                    files[CORE_FOLDER / runtime / transport / name] = text
    return files


def kitex_frames() -> dict[Path, str]:
    files: dict[Path, str] = {}
    bare_cases = tuple(name for name in BARE_CASES if not name.startswith("raw_") and name not in APACHE_CASES)
    for peer, transport, name, text in kitex.capture(bare_cases):
        is_plain_thrift = transport not in message.TTHEADER_TRANSPORTS
        if is_plain_thrift:
            files[FOLDER / "golden" / peer / transport / name] = text
        if not is_plain_thrift or name.split(".")[0] in CORE_CASES:
            files[CORE_FOLDER / peer / transport / name] = text
    return files


if __name__ == "__main__":
    sys.exit(main())
