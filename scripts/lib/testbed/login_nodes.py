"""Two real SSH servers on loopback: `python login_nodes.py STATE [VARIABLE=VALUE]...`, the variables for sessions.

STATE/home/.ssh is the folder of a user who may log in: hosts testbed-login (direct), testbed-jump, and testbed-behind,
which is the login node through testbed-jump. Nobody else's files are read. What each server saw is in STATE/*.log.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from getpass import getuser
from pathlib import Path

PORTS = {"login": 2222, "jump": 2223}

SERVER = """\
ListenAddress 127.0.0.1:{port}
HostKey {state}/{name}.key
PidFile none
AuthorizedKeysFile {state}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxSessions 20
MaxStartups 100
LogLevel VERBOSE
Subsystem sftp internal-sftp
"""
CLIENT = """\
Host testbed-*
    HostName 127.0.0.1
    User {user}
    IdentityFile {home}/id_ed25519
    IdentitiesOnly yes
    UserKnownHostsFile {home}/known_hosts
    BatchMode yes
Host testbed-login testbed-behind
    Port {login}
Host testbed-jump
    Port {jump}
Host testbed-behind
    ProxyJump testbed-jump
"""


def main(state: Path, variables: Sequence[str]) -> None:
    home = state / "home" / ".ssh"
    home.mkdir(parents=True, mode=0o700)
    Path("/run/sshd").mkdir(exist_ok=True)  # where sshd separates its privileges
    make_key(home / "id_ed25519")
    (state / "authorized_keys").write_bytes((home / "id_ed25519.pub").read_bytes())
    ports = free_ports()
    servers = [serve(state, name, port, variables if name == "login" else ()) for name, port in ports.items()]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})  # not earlier: children inherit it
    known = [f"[127.0.0.1]:{port} {(state / f'{name}.key.pub').read_text()}" for name, port in ports.items()]
    (home / "known_hosts").write_text("".join(known))
    (home / "config").write_text(CLIENT.format(user=getuser(), home=home, **ports))
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    for server in servers:
        server.terminate()
    for server in servers:
        server.wait()


def serve(state: Path, name: str, port: int, variables: Sequence[str]) -> subprocess.Popen[bytes]:
    make_key(state / f"{name}.key")
    config = state / f"{name}.conf"
    settings = f"SetEnv {' '.join(variables)}\n" if variables else ""
    config.write_text(SERVER.format(state=state, name=name, port=port) + settings)
    return subprocess.Popen(["/usr/sbin/sshd", "-D", "-f", config, "-E", state / f"{name}.log"])


def make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "testbed", "-f", path], check=True)


def free_ports() -> dict[str, int]:
    """The wanted ports, or others where somebody has them."""
    ports = {}
    for name, wanted in PORTS.items():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                probe.bind(("127.0.0.1", 0))
            ports[name] = probe.getsockname()[1]
    return ports


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
