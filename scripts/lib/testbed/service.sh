# Sourced by scripts/testbed: daemons of the testbed, each with a folder of its own under .testbed/ (process, log).

# A pid alone could belong to another process by now (a restart, a wrap): its start time belongs to it.
process_of() {
    # Fields after "pid (command)": the first is the state, Z for one that ended, the 20th the start time.
    sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | awk -v pid="$1" '$1 != "Z" { print pid, $20 }'
}

# A part without a process of its own says itself whether it is there: PART_is_up.
is_up() {
    if command -v "$1_is_up" >/dev/null; then
        "$1_is_up"
        return
    fi
    [ -s "$state/$1/process" ] && recorded=$(cat "$state/$1/process") && [ "$(process_of "${recorded%% *}")" = "$recorded" ]
}

# start NAME COMMAND...: in the background, deaf to the terminal.
start() {
    name=$1
    shift
    mkdir -p "$state/$name"
    nohup "$@" >"$state/$name/log" 2>&1 </dev/null &
    process_of $! >"$state/$name/process"
}

# wait_for NAME: until it answers, two minutes at most; it must live until then.
wait_for() {
    left=600
    until "$1_answers" >/dev/null 2>&1; do
        is_up "$1" || fail "$1 ended before it answered: $(tail -n 1 "$state/$1/log") (all of it: $state/$1/log)"
        [ "$left" -gt 0 ] || fail "$1 does not answer: see $state/$1/log"
        left=$((left - 1))
        sleep 0.2
    done
}

stop() {
    if [ -s "$state/$1/process" ] && is_up "$1"; then
        pid=${recorded%% *} left=50
        kill "$pid" || true
        while is_up "$1"; do
            [ "$left" -gt 0 ] || kill -KILL "$pid" || true
            left=$((left - 1))
            sleep 0.2
        done
    fi
    rm -rf "${state:?}/$1"
}

# variable NAME VALUE: as a line for eval.
variable() {
    printf "export %s='%s'\n" "$1" "$(printf %s "$2" | sed "s/'/'\\\\''/g")"
}
