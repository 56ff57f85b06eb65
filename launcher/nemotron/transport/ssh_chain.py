"""Connections through connections: a login node, and every jump host before it."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import paramiko

from nemotron.transport.base import Done, TransportError
from nemotron.transport.sftp import SECONDS, Files
from nemotron.transport.ssh_config import Hop
from nemotron.transport.ssh_exec import BROKEN, close_channel, closed_after, execute
from nemotron.transport.ssh_line import NoRoomError, NotSentError, command_line
from nemotron.transport.ssh_process import SocketProcess
from nemotron.transport.ssh_wire import Wire, dial, open_wire


class Chain:
    """A line that is closed from its far end on; what fails to open leaves nothing open."""

    def __init__(self, route: Sequence[Hop], environ: Mapping[str, str]) -> None:
        self._hop = route[-1]
        self._opening = threading.Lock()
        with ExitStack() as opened:
            end: Wire | None = None
            for hop in route:
                end = _reach(hop, end, opened, environ)
                opened.callback(end.close)
            assert end is not None
            self._end: Wire = end
            self._opened = opened.pop_all()

    @property
    def is_alive(self) -> bool:
        return self._end.is_active()

    def run(self, command: Sequence[str], stdin: bytes, timeout: float) -> Done:
        channel = self._channel()
        try:
            with closed_after(channel, timeout):
                return execute(channel, command_line(command), stdin)
        except TimeoutError:
            raise TransportError(f"{command[0]} on {self._hop} gave no answer within {timeout:.0f} s.") from None
        except BROKEN as error:
            raise TransportError(
                f"The connection to {self._hop} broke while {command[0]} ran there ({error}): it may have run."
            ) from error
        finally:
            close_channel(channel)

    def files(self) -> Files:
        return Files(self._sftp, str(self._hop))

    def _sftp(self) -> paramiko.Channel:
        channel = self._channel()
        try:
            with closed_after(channel, self._hop.connect_timeout):
                channel.invoke_subsystem("sftp")
        except BaseException:
            close_channel(channel)
            raise
        channel.settimeout(SECONDS)
        return channel

    def _channel(self) -> paramiko.Channel:
        """One after the other, as paramiko keeps but one reason for all that failed."""
        try:
            with self._opening:
                return self._end.open_session(timeout=self._hop.connect_timeout)
        except paramiko.ChannelException as error:
            raise NoRoomError(f"{self._hop} opens no further channel: {error.text}.") from None
        except BROKEN as error:
            raise NotSentError(f"{self._hop} opens no channel: {error or 'connection lost'}.") from None

    def close(self) -> None:
        self._opened.close()


def _reach(hop: Hop, before: Wire | None, opened: ExitStack, environ: Mapping[str, str]) -> Wire:
    if before is not None:
        return open_wire(hop, _tunnel(hop, before))
    if hop.proxy_command is None:
        return open_wire(hop, dial(hop))
    proxy = SocketProcess(["/bin/sh", "-c", f"exec {hop.proxy_command}"], environ)
    opened.callback(proxy.close)
    try:
        return open_wire(hop, proxy.stream)
    except TransportError as error:
        raise TransportError(f"{error} Its ProxyCommand says: {proxy.said or 'nothing'}.") from error


def _tunnel(hop: Hop, before: Wire) -> paramiko.Channel:
    try:
        return before.open_channel("direct-tcpip", (hop.host, hop.port), ("127.0.0.1", 0), timeout=hop.connect_timeout)
    except paramiko.ChannelException as error:
        why = f"it does not connect to {hop.host} port {hop.port}: {error.text}"
    except BROKEN as error:
        why = str(error) or "connection lost"
    raise TransportError(f"{hop} cannot be reached through {hop.behind}: {why}.")
