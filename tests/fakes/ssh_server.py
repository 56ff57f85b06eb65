"""An SSH server in this process, over paramiko's server side: commands run in a shell, files are this machine's, and
connections go on to other ports. What real servers cannot be told to do, it can: see `Manners`."""

import io
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from paramiko import common

from tests.fakes.sftp_folder import SftpFolder

GONE = (OSError, ValueError, EOFError, paramiko.SSHException)


@dataclass
class Manners:
    """How it behaves; may be changed while it runs."""

    accepted: list[paramiko.PKey] = field(default_factory=list)
    """Keys that may log in."""
    methods: tuple[str, ...] = ("publickey",)
    wants_second_factor: bool = False
    falls_silent: bool = False
    """Commands run, and nothing is ever said again about them."""
    drops: bool = False
    """Commands run, and then the connection is gone."""
    ends_without_status: bool = False
    ignores_commands: bool = False
    """Not even the request is answered."""
    has_sftp: bool = True
    most_channels: int = 1000
    shell: tuple[str, ...] = ("/bin/sh", "-c")


class SshServer:
    """On a port of loopback, until it is closed."""

    def __init__(self, host_keys: Sequence[paramiko.PKey], manners: Manners) -> None:
        self.host_keys = list(host_keys)
        self.manners = manners
        self.commands: list[str] = []
        self.offered: list[str] = []
        """Fingerprints of the keys that somebody wanted to log in with."""
        self.connections = 0
        self.closing = threading.Event()
        self.processes: list[subprocess.Popen[bytes]] = []
        self._transports: list[paramiko.Transport] = []
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self.start(self._listen)

    def __enter__(self) -> "SshServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def drop_connections(self) -> None:
        """As a firewall or a restart does: without a word about it."""
        for transport in self._transports:
            with suppress(*GONE):
                transport.close()
        for transport in filter(threading.Thread.is_alive, self._transports):
            transport.join(10)
        self._transports.clear()

    def connect(self, address: tuple[str, int]) -> socket.socket:
        connected = socket.create_connection(address, timeout=10)
        self._sockets.append(connected)
        return connected

    def close(self) -> None:
        """May be called again."""
        if self.closing.is_set():
            return
        self.closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()
        for opened in self._sockets:
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()
        for process in self.processes:
            process.kill()
        for thread in self._threads:
            thread.join(10)

    def _listen(self) -> None:
        while True:
            try:
                connected, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(connected)
            transport = paramiko.Transport(connected)
            for key in self.host_keys:
                transport.add_server_key(key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, SftpFolder)
            self._transports.append(transport)
            with suppress(*GONE):
                transport.start_server(event=threading.Event(), server=_Session(self, transport))


class _Session(paramiko.ServerInterface):
    def __init__(self, server: SshServer, transport: paramiko.Transport) -> None:
        self._server = server
        self._transport = transport
        self._channels = 0
        self._has_key = False

    def get_allowed_auths(self, username: str) -> str:
        if self._has_key and self._server.manners.wants_second_factor:
            return "keyboard-interactive"
        return ",".join(self._server.manners.methods)

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self._server.offered.append(key.fingerprint)
        if key.asbytes() not in [accepted.asbytes() for accepted in self._server.manners.accepted]:
            return common.AUTH_FAILED
        self._has_key = True
        return common.AUTH_PARTIALLY_SUCCESSFUL if self._server.manners.wants_second_factor else common.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        self._channels += 1
        if self._channels > self._server.manners.most_channels:
            return common.OPEN_FAILED_RESOURCE_SHORTAGE
        return common.OPEN_SUCCEEDED

    def check_channel_subsystem_request(self, channel: paramiko.Channel, name: str) -> bool:
        return self._server.manners.has_sftp and super().check_channel_subsystem_request(channel, name)

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        try:
            connected = self._server.connect(destination)
        except OSError:
            return common.OPEN_FAILED_CONNECT_FAILED
        self._server.start(self._join, chanid, connected)
        return common.OPEN_SUCCEEDED

    def _join(self, chanid: int, connected: socket.socket) -> None:
        channel = self._transport.accept(10)
        assert channel is not None and channel.chanid == chanid
        self._server.start(_copy, connected.recv, channel.sendall, channel.shutdown_write)
        _copy(channel.recv, connected.sendall, lambda: connected.shutdown(socket.SHUT_WR))
        with suppress(*GONE):
            channel.close()

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        manners = self._server.manners
        self._server.commands.append(command.decode())
        if manners.ignores_commands:
            return self._server.closing.wait(60)
        _send_success(channel)  # paramiko's comes when this returns, which may be after the command's end
        process = subprocess.Popen(
            [*manners.shell, command.decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
        )
        self._server.processes.append(process)
        self._server.start(self._serve, channel, process)
        return True

    def _serve(self, channel: paramiko.Channel, process: subprocess.Popen[bytes]) -> None:
        manners = self._server.manners
        assert process.stdin and process.stdout and process.stderr
        if manners.falls_silent or manners.drops or manners.ends_without_status:
            process.communicate()
            if manners.drops:
                self._transport.close()
            elif manners.ends_without_status:
                with suppress(*GONE):
                    channel.close()
            return
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        feeding = threading.Thread(target=_copy, args=(channel.recv, stdin.write, stdin.close), daemon=True)
        saying = threading.Thread(target=_copy, args=(stderr.read1, channel.sendall_stderr, stderr.close), daemon=True)
        feeding.start()
        saying.start()
        _copy(stdout.read1, channel.sendall, stdout.close)
        saying.join()
        code = process.wait()
        with suppress(*GONE):
            _send_end(channel, code)
            channel.close()
        feeding.join()


def _copy(receive: Callable[[int], bytes], send: Callable[[bytes], object], end: Callable[[], object]) -> None:
    try:
        while chunk := receive(1 << 15):
            send(chunk)
    except GONE:
        pass
    with suppress(*GONE):
        end()


def _send_success(channel: paramiko.Channel) -> None:
    message = paramiko.Message()
    message.add_byte(common.cMSG_CHANNEL_SUCCESS)
    message.add_int(channel.remote_chanid)
    channel.transport._send_user_message(message)


def _send_end(channel: paramiko.Channel, code: int) -> None:
    if code >= 0:
        channel.send_exit_status(code)
        return
    message = paramiko.Message()
    message.add_byte(common.cMSG_CHANNEL_REQUEST)
    message.add_int(channel.remote_chanid)
    message.add_string("exit-signal")
    message.add_boolean(False)
    message.add_string({-9: "KILL", -15: "TERM"}[code])
    message.add_boolean(False)
    message.add_string("")
    message.add_string("")
    channel.transport._send_user_message(message)


def new_key() -> paramiko.PKey:
    """Ed25519, which paramiko can read and not make."""
    return paramiko.Ed25519Key.from_private_key(io.StringIO(new_key_text()))


def new_key_text(passphrase: str | None = None) -> str:
    protection = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    made = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, protection)
    return made.decode()
