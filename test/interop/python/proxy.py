"""A proxy between a client and a server that keeps what they said."""

import socket
import threading

TIMEOUT_SECONDS = 20.0


class RecordingProxy:
    """Passes one connection on to a server and keeps what went through."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(TIMEOUT_SECONDS)
        self.port = self._listener.getsockname()[1]
        self._requests = bytearray()
        self._replies = bytearray()
        self._requested = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait_for_request(self) -> None:
        """Returns when the client has said something and the server was told."""
        if not self._requested.wait(TIMEOUT_SECONDS):
            raise TimeoutError("the client says nothing")

    def cancel(self) -> None:
        """Ends a proxy that nobody connects to."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(TIMEOUT_SECONDS)

    def finish(self) -> tuple[bytes, bytes]:
        """Waits for the end of the connection and returns requests and replies."""
        self._thread.join(TIMEOUT_SECONDS)
        return bytes(self._requests), bytes(self._replies)

    def _run(self) -> None:
        with self._listener:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # cancelled, or nobody came
        with client, socket.create_connection(("127.0.0.1", self._server_port), TIMEOUT_SECONDS) as server:
            back = threading.Thread(target=_pump, args=(server, client, self._replies), daemon=True)
            back.start()
            _pump(client, server, self._requests, self._requested)
            back.join(TIMEOUT_SECONDS)


def _pump(
    source: socket.socket, target: socket.socket, record: bytearray, passed: threading.Event | None = None
) -> None:
    try:
        while chunk := source.recv(65536):
            record += chunk
            target.sendall(chunk)
            if passed:
                passed.set()
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one side is gone, and the other will notice
