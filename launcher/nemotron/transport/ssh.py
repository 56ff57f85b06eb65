"""A machine behind SSH: one connection for all commands and files."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import paramiko

from nemotron.transport.base import Done, Entry, TransportError
from nemotron.transport.sftp import Client, Files
from nemotron.transport.ssh_chain import Chain
from nemotron.transport.ssh_config import Destination, route_to
from nemotron.transport.ssh_exec import execute

FILE_SECONDS = 60.0
"""How long one file operation may stay without any answer."""


class Ssh:
    """Connects when it is first used, and again when its connection turns out dead before a command went out."""

    is_here = False

    def __init__(self, destination: Destination, environ: Mapping[str, str]) -> None:
        self._route = route_to(destination, environ)
        self.name = str(self._route[-1])
        self._chain: Chain | None = None
        self._idle: list[Files] = []
        self._lock = threading.RLock()

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout: float = 60.0) -> Done:
        with self._channel() as channel:
            return execute(channel, command, stdin, timeout, self.name)

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        with self._files() as files:
            files.write(path, content, mode)

    def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        with self._files() as files:
            return files.read(path, offset, size)

    def walk(self, folder: str) -> Iterator[Entry]:
        with self._files() as files:
            yield from files.walk(folder)

    def remove(self, path: str) -> None:
        with self._files() as files:
            files.remove(path)

    def close(self) -> None:
        with self._lock:
            chain, self._chain, idle, self._idle = self._chain, None, self._idle, []
        for files in idle:
            files.close()
        if chain is not None:
            chain.close()

    @contextmanager
    def _files(self) -> Iterator[Files]:
        """As many SFTP sessions as there are threads that want one at once; they are kept."""
        with self._lock:
            alive = self._chain is not None and self._chain.is_alive
            files = self._idle.pop() if alive and self._idle else None
        files = files or self._open_files()
        try:
            yield files
        finally:
            with self._lock:
                is_kept = files.is_usable and self._chain is not None
                if is_kept:
                    self._idle.append(files)
            if not is_kept:
                files.close()

    def _open_files(self) -> Files:
        channel = self._open_channel()
        try:
            channel.settimeout(FILE_SECONDS)
            channel.invoke_subsystem("sftp")
            return Files(Client(channel), self.name)
        except (paramiko.SSHException, EOFError, OSError) as error:
            channel.close()
            raise TransportError(f"{self.name} offers no SFTP: {error or 'connection lost'}.") from None

    @contextmanager
    def _channel(self) -> Iterator[paramiko.Channel]:
        channel = self._open_channel()
        try:
            yield channel
        finally:
            channel.close()

    def _open_channel(self) -> paramiko.Channel:
        with self._lock:
            is_kept = self._chain is not None
            try:
                return self._connected().channel()
            except paramiko.ChannelException as error:
                raise TransportError(f"{self.name} opens no further channel: {error.text}.") from None
            except (paramiko.SSHException, EOFError, OSError) as error:
                self.close()
                if not is_kept:
                    raise TransportError(f"{self.name} opens no channel: {error or 'connection lost'}.") from None
            return self._open_channel()

    def _connected(self) -> Chain:
        if self._chain is not None and not self._chain.is_alive:
            self.close()
        if self._chain is None:
            self._chain = Chain(self._route)
        return self._chain
