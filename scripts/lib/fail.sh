# Sourced by the other scripts: how they give up, in one line.
fail() {
    echo "$0: $*" >&2
    exit 1
}
