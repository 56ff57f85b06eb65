"""A wire between a client and a server on loopback that breaks once, when a test says so."""

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType

CHUNK = 65536


class Relay:
    """Before it passes on what the server says, `breaks` is asked; at its first yes that connection is cut. Later
    connections are left alone."""

    def __init__(self, server_port: int, breaks: Callable[[], bool]) -> None:
        self._server_port, self._breaks = server_port, breaks
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self.is_broken = False

    def __enter__(self) -> "Relay":
        self._in_thread(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for open_socket in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
            open_socket.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                return
            self.connections += 1
            self._sockets += [client, server]
            self._in_thread(self._pass_on, client, server, lambda: False)
            self._in_thread(self._pass_on, server, client, self._cuts)

    def _pass_on(self, source: socket.socket, target: socket.socket, cuts: Callable[[], bool]) -> None:
        with contextlib.suppress(OSError):
            while (chunk := source.recv(CHUNK)) and not cuts():
                target.sendall(chunk)
        for end in source, target:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _cuts(self) -> bool:
        if not self.is_broken and self._breaks():
            self.is_broken = True
            return True
        return False

    def _in_thread(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()
