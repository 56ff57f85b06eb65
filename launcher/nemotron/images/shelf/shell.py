"""The few lines of POSIX shell that a shelf is run with: they work on any login node.

Values reach them as arguments only, so none can be read as a command.
"""

from nemotron.errors import LauncherError
from nemotron.transport.base import Done, Session

TAKEN, ABSENT = 17, 2
"""Exit codes of the scripts."""

TAKE = f"""
umask 002
set -C
if ! (: >"$1") 2>/dev/null; then
    [ -e "$1" ] && exit {TAKEN}
    : >"$1" || exit 1
fi
set +C
printf %s "$2" >"$1" || {{ rm -f "$1"; exit 1; }}
"""
"""CLAIM CONTENT: exclusively."""

TAKE_OVER = f"""
umask 002
set -C
if ! (: >"$1.over") 2>/dev/null; then
    find "$1.over" -mmin +10 -exec rm -f {{}} + 2>/dev/null
    exit {TAKEN}
fi
code={TAKEN}
if [ "$(cat "$1" 2>/dev/null)" = "$2" ]; then
    printf %s "$3" >"$1.$4" && mv -f "$1.$4" "$1"
    code=$?
fi
rm -f "$1.over" "$1.$4"
exit $code
"""
"""CLAIM OLD NEW TOKEN: one of all who saw the old owner dead, and only while the claim is still that owner's."""

LOOK = f"""
cat "$1" 2>/dev/null || exit {ABSENT}
echo
stat -c %y "$1" 2>/dev/null || exit {ABSENT}
"""
"""CLAIM: its content, then a line that changes with each heartbeat."""

RELEASE = '[ "$(cat "$1" 2>/dev/null)" != "$2" ] || rm -f "$1"'

RENEW = '[ "$(cat "$1" 2>/dev/null)" = "$2" ] && touch -c "$1"'

MAKE_FOLDERS = 'umask 002; mkdir -p -- "$@"'

FIND = f"""
cd "$1" 2>/dev/null || exit {ABSENT}
for name in "$2" "$3"; do
    if [ -f "$name" ]; then
        name=$(readlink "$name" || echo "$name")
        touch -c "${{name%.sqsh}}.json" 2>/dev/null
        echo "$name"
        exec stat -c %s "$name"
    fi
done
exit {ABSENT}
"""
"""FOLDER NAME NAME: the file behind the first name that is there, its size; the time of its record is its last use."""

PUBLISH = 'chmod 644 "$1" && { sync "$1" 2>/dev/null || sync; } && mv -f "$1" "$2"'

LINK = 'ln -s "$3" "$1/.$2.$4" && mv -fT "$1/.$2.$4" "$1/$2"'
"""FOLDER NAME TARGET TOKEN: replaced in one step."""

LISTING = (
    "cd \"$1\" 2>/dev/null || exit 2; find . -mindepth 1 -maxdepth 1 -printf '%y\\t%s\\t%T@\\t%f\\t%l\\n'; date +%s"
)

FREE = 'df -Pk "$1" | tail -n 1'

WRITE_AT = 'dd of="$1" seek="$2" oflag=seek_bytes conv=notrunc bs=1M iflag=fullblock status=none'
"""FILE OFFSET: what comes on standard input; the same piece twice does no harm."""


class ShelfFailed(LauncherError):
    """The folder cannot be used."""


def sh(session: Session, script: str, *values: str, stdin: bytes = b"", timeout: float = 60.0) -> Done:
    return session.run(["sh", "-c", script, "sh", *values], stdin=stdin, timeout=timeout)


def must(done: Done, session: Session, what: str) -> str:
    """Its output, when it worked."""
    if done.code == 0:
        return done.stdout
    why = done.said.removeprefix("sh: ") or f"exit code {done.code}"
    hint = "make room there, or choose another folder" if _is_full(why) else "look at it, or choose another folder"
    raise ShelfFailed(f"{what} on {session.name} failed ({why}): {hint}.")


def _is_full(text: str) -> bool:
    return "No space left" in text or "quota" in text.lower()
