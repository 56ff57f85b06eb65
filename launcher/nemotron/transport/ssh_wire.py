"""One encrypted connection with one server."""

import logging
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import paramiko
from paramiko.common import MSG_CHANNEL_REQUEST

from nemotron.transport.base import TransportError
from nemotron.transport.known_hosts import check, known_keys, preferred_types
from nemotron.transport.ssh_config import Hop
from nemotron.transport.ssh_exec import BROKEN
from nemotron.transport.ssh_login import log_in

MISSED_SIGNS_OF_LIFE = 3
BY_SIGNAL = 128

logging.getLogger("paramiko").addHandler(logging.NullHandler())  # else its threads write on standard error


def _hear_signal(channel: paramiko.Channel, message: paramiko.Message) -> None:
    """Paramiko leaves a command that a signal ended without an exit status, as if the connection were gone."""
    start = message.packet.tell()
    if message.get_text() == "exit-signal":
        message.get_boolean()
        channel.exit_status = BY_SIGNAL + getattr(signal, f"SIG{message.get_text()}", 0)
        channel.status_event.set()
        return
    message.packet.seek(start)
    channel._handle_request(message)  # type: ignore[attr-defined]


class Wire(paramiko.Transport):
    _channel_handler_table: ClassVar[dict[int, Callable[..., Any]]] = {
        **paramiko.Transport._channel_handler_table,  # type: ignore[attr-defined]
        MSG_CHANNEL_REQUEST: _hear_signal,
    }

    host_key_types: tuple[str, ...] = ()
    """In the order in which they are asked for."""

    @property
    def preferred_keys(self) -> tuple[str, ...]:
        return self.host_key_types

    def close(self) -> None:
        """Also where its thread never ran, or has ended by itself."""
        for close in (super().close, self.sock.close):
            with suppress(*BROKEN):  # raised by the tunnel that it runs through
                close()
        if self.is_alive():
            self.join(MISSED_SIGNS_OF_LIFE)


def open_wire(hop: Hop, stream: "socket.socket | paramiko.Channel") -> Wire:
    """Over `stream`, which is closed with it: the server is checked, and the user logged in."""
    wire = Wire(stream)
    try:
        wire.banner_timeout = wire.handshake_timeout = wire.auth_timeout = hop.connect_timeout
        known = known_keys(hop)
        wire.host_key_types = preferred_types(known, wire.get_security_options().key_types)
        wire.start_client(timeout=2 * hop.connect_timeout)
        check(hop, known, wire.get_remote_server_key())
        log_in(wire, hop)
        wire.set_keepalive(hop.keepalive)
    except BROKEN as error:
        wire.close()
        raise TransportError(
            f"No SSH connection with {hop}: {error or 'it closed the connection'}. `ssh -v {hop}` tells more."
        ) from error
    except BaseException:
        wire.close()
        raise
    return wire


def dial(hop: Hop) -> socket.socket:
    try:
        connected = socket.create_connection((hop.host, hop.port), timeout=hop.connect_timeout)
    except OSError as error:
        why = error.strerror or str(error) or "no answer"
        raise TransportError(
            f"{hop} cannot be reached: {hop.host} port {hop.port}: {why}. Check the name, the network and the VPN."
        ) from None
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        limit = 1000 * hop.keepalive * MISSED_SIGNS_OF_LIFE
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit)
    return connected
