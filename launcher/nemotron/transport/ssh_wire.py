"""One encrypted connection with one server."""

import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any, ClassVar

import paramiko
from paramiko.common import MSG_CHANNEL_REQUEST

from nemotron.transport.base import TransportError
from nemotron.transport.known_hosts import check, known_keys, preferred_types
from nemotron.transport.ssh_config import Hop
from nemotron.transport.ssh_login import log_in

MISSED_SIGNS_OF_LIFE = 3
BY_SIGNAL = 128


def _hear_signal(channel: paramiko.Channel, message: paramiko.Message) -> None:
    """Paramiko leaves a command that a signal ended without an exit status, as if the connection were gone."""
    start = message.packet.tell()
    if message.get_text() == "exit-signal":
        message.get_boolean()
        number = getattr(signal, f"SIG{message.get_text()}", None)
        channel.exit_status = BY_SIGNAL + (number or 0)
        channel.status_event.set()
        return
    message.packet.seek(start)
    channel._handle_request(message)  # type: ignore[attr-defined]


class Wire(paramiko.Transport):
    _channel_handler_table: ClassVar[dict[int, Callable[..., Any]]] = {
        **paramiko.Transport._channel_handler_table,  # type: ignore[attr-defined]
        MSG_CHANNEL_REQUEST: _hear_signal,
    }


def open_wire(hop: Hop, stream: "socket.socket | paramiko.Channel") -> Wire:
    """Over `stream`, which is closed with it: the server is checked, and the user logged in."""
    try:
        wire = Wire(stream)
    except BaseException:
        stream.close()
        raise
    try:
        wire.banner_timeout = wire.handshake_timeout = wire.auth_timeout = hop.connect_timeout
        known = known_keys(hop)
        options = wire.get_security_options()
        options.key_types = preferred_types(known, options.key_types)
        wire.start_client(timeout=2 * hop.connect_timeout)
        check(hop, known, wire.get_remote_server_key())
        log_in(wire, hop)
        wire.set_keepalive(hop.keepalive)
    except (paramiko.SSHException, EOFError, OSError) as error:
        close_wire(wire)
        raise TransportError(f"{hop} does not speak SSH with us: {error or 'it closed the connection'}.") from error
    except BaseException:
        close_wire(wire)
        raise
    return wire


def close_wire(wire: Wire) -> None:
    """Also where its thread never ran, or has ended by itself."""
    wire.close()
    wire.sock.close()
    if wire.is_alive():
        wire.join(5)


def dial(hop: Hop) -> socket.socket:
    try:
        connected = socket.create_connection((hop.host, hop.port), timeout=hop.connect_timeout)
    except OSError as error:
        why = error.strerror or str(error) or "no answer"
        raise TransportError(
            f"{hop} cannot be reached: {hop.host} port {hop.port}: {why}. Check the name, the network and the VPN."
        ) from None
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hop.keepalive and hasattr(socket, "TCP_USER_TIMEOUT"):
        limit = 1000 * hop.keepalive * MISSED_SIGNS_OF_LIFE
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit)
    return connected


class ProxyCommand:
    """The command of ssh's ProxyCommand, with a socket for its standard input and output."""

    def __init__(self, hop: Hop) -> None:
        self.stream, theirs = socket.socketpair()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the rest
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {hop.proxy_command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._said,
            )
        except BaseException:
            self.stream.close()
            self._said.close()
            raise
        finally:
            theirs.close()

    @property
    def said(self) -> str:
        """Its last words on standard error, on one line."""
        self._said.seek(0)
        return " ".join(self._said.read().decode("utf-8", "replace").split())[-300:]

    def close(self) -> None:
        self.stream.close()
        self._process.terminate()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()
