# podman behind Docker's API, with storage and settings of its own.
. scripts/lib/testbed/packages.sh
. scripts/lib/testbed/engine.sh

podman_start() {
    mkdir -p "$state/podman"
    needs podman runc buildah skopeo umoci squashfuse mksquashfs=squashfs-tools
    engine_settings
    start podman podman system service --time=0 "unix://$state/podman/engine.sock"
}

podman_answers() {
    python -c "$ping" "$state/podman/engine.sock"
}

podman_env() {
    variable NEL_TEST_ENGINE "unix://$state/podman/engine.sock"
}

ping='
import socket, sys
engine = socket.socket(socket.AF_UNIX)
engine.settimeout(5)
engine.connect(sys.argv[1])
engine.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
assert b" 200 " in engine.recv(100)
'
