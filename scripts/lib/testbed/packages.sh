# Sourced by parts that need packages of the system.

# needs COMMAND[=PACKAGE]...: installs what is missing, as root; says what to install otherwise.
needs() {
    missing=
    for needed; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${needed%%=*}" >/dev/null || missing="$missing ${needed#*=}"
    done
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "needs$missing: install them (on Debian: apt-get install$missing)"
    echo "Installing$missing (once) ..." >&2
    # shellcheck disable=SC2086
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends $missing; } \
        >"$state/apt.log" 2>&1 || fail "apt-get could not install$missing: see $state/apt.log"
}
