"""A foreign peer on the command line: a server, or a client that checks a server.

    peer.py serve --runtime apache --transport framed
    peer.py call --runtime thriftpy2 --transport bare --port 4711 --case all

`serve` prints one JSON line with its port and serves on the loopback interface
until its standard input ends, so that it never outlives who started it. `call`
runs cases of cases.json and prints one JSON line each; its exit code is 1 if
one differs.
"""

import argparse
import json
import logging
import os
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

from peers import apache, apache_only, cases, thriftpy

FOLDER = Path(__file__).resolve().parent.parent
RUNTIMES = ("thriftpy2", "apache", "apache-accelerated")
LIFETIME_SECONDS = 900


def make_runtime(name: str, idl: str) -> Any:
    if name == "thriftpy2":
        return thriftpy.Runtime(idl, "Everything")
    return apache.Runtime(idl, "Everything", accelerated=name == "apache-accelerated", extra=apache_only.schema())


def serve(options: argparse.Namespace) -> int:
    server, port = make_runtime(options.runtime, options.idl).make_server(options.transport, options.idle_timeout)
    threading.Thread(target=server.serve, daemon=True).start()
    print(json.dumps({"port": port, "runtime": options.runtime, "transport": options.transport}), flush=True)
    end = threading.Timer(LIFETIME_SECONDS, os._exit, (1,))
    end.daemon = True
    end.start()
    while sys.stdin.buffer.read(4096):
        pass
    return 0


def call(options: argparse.Namespace) -> int:
    server = cases.Server(options.server, options.host, options.port, options.transport, options.timeout)
    runner = cases.Runner(make_runtime(options.runtime, options.idl), options.runtime, server, uuid.uuid4().hex)
    content = json.loads(Path(options.cases).read_text(encoding="utf-8"))
    outcomes = []
    for outcome in runner.run(content, options.case):
        print(outcome.line(), flush=True)
        outcomes.append(outcome)
    if not outcomes:
        print(f"peer: no case for {options.runtime} is named {options.case}", file=sys.stderr)
        return 2
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A Thrift peer for interoperability tests.")
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--runtime", choices=RUNTIMES, required=True)
    common.add_argument("--transport", choices=("bare", "framed"), required=True)
    common.add_argument("--idl", default=str(FOLDER / "everything.thrift"))
    serving = commands.add_parser("serve", parents=[common], help="serve until standard input ends")
    serving.add_argument("--idle-timeout", type=float, default=60.0, help="seconds until an idle connection is closed")
    serving.set_defaults(run=serve)
    calling = commands.add_parser("call", parents=[common], help="run cases against a server")
    calling.add_argument("--host", default="127.0.0.1")
    calling.add_argument("--port", type=int, required=True)
    calling.add_argument("--server", default="fulmar", help="what the server is, where servers may differ")
    calling.add_argument("--timeout", type=float, default=10.0, help="seconds for each read")
    calling.add_argument("--cases", default=str(FOLDER / "cases.json"))
    calling.add_argument("--case", default="all")
    calling.set_defaults(run=call)
    return parser.parse_args(arguments)


def main() -> int:
    logging.basicConfig(level=logging.ERROR, format="%(name)s: %(message)s")
    options = parse(sys.argv[1:])
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
