"""Connections through connections: a login node, and every jump host before it."""

from collections.abc import Sequence
from contextlib import ExitStack

import paramiko

from nemotron.transport.base import TransportError
from nemotron.transport.ssh_config import Hop
from nemotron.transport.ssh_wire import ProxyCommand, Wire, close_wire, dial, open_wire


class Chain:
    """Closed from its far end on; what fails to open leaves nothing open."""

    def __init__(self, route: Sequence[Hop]) -> None:
        with ExitStack() as opened:
            wire = None
            for hop in route:
                wire = self._reach(hop, wire, opened)
                opened.callback(close_wire, wire)
            assert wire is not None
            self._end: Wire = wire
            self._hop = route[-1]
            self._opened = opened.pop_all()

    @staticmethod
    def _reach(hop: Hop, before: Wire | None, opened: ExitStack) -> Wire:
        if before is not None:
            return open_wire(hop, _tunnel(hop, before))
        if hop.proxy_command is None:
            return open_wire(hop, dial(hop))
        command = ProxyCommand(hop)
        opened.callback(command.close)
        try:
            return open_wire(hop, command.stream)
        except TransportError as error:
            raise TransportError(f"{error} Its ProxyCommand says: {command.said or 'nothing'}.") from error

    @property
    def is_alive(self) -> bool:
        return self._end.is_active()

    def channel(self) -> paramiko.Channel:
        """For one command or subsystem."""
        return self._end.open_session(timeout=self._hop.connect_timeout)

    def close(self) -> None:
        self._opened.close()


def _tunnel(hop: Hop, before: Wire) -> paramiko.Channel:
    try:
        return before.open_channel("direct-tcpip", (hop.host, hop.port), ("127.0.0.1", 0), timeout=hop.connect_timeout)
    except paramiko.ChannelException as error:
        raise TransportError(
            f"{hop} cannot be reached: the jump host before it does not connect to {hop.host} port {hop.port}: "
            f"{error.text}."
        ) from None
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise TransportError(f"{hop} cannot be reached through its jump host: {error}.") from None
