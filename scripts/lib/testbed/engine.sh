# Sourced by parts that use containers: settings of an engine that leaves this machine's own alone.

# Everything under the state folder; runc and cgroupfs because crun refuses the cgroups of some machines.
engine_settings() {
    mkdir -p "$state/cache/containers" "$state/podman"
    cat >"$state/podman/containers.conf" <<EOF
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
EOF
    cat >"$state/podman/storage.conf" <<EOF
[storage]
driver = "overlay"
graphroot = "$state/cache/containers"
runroot = "$state/podman/run"
EOF
    cat >"$state/podman/registries.conf" <<EOF
[[registry]]
location = "127.0.0.1"
insecure = true
EOF
    export CONTAINERS_CONF="$state/podman/containers.conf"
    export CONTAINERS_STORAGE_CONF="$state/podman/storage.conf"
    export CONTAINERS_REGISTRIES_CONF="$state/podman/registries.conf"
}
