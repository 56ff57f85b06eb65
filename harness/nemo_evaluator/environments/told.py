"""An exception of a user's own code, told in one line with its place."""

import sysconfig
import traceback

_INSTALLED = tuple(sysconfig.get_paths()[kind] for kind in ("stdlib", "purelib", "platlib"))


def told(error: BaseException) -> str:
    """`KeyError: 'gold' (mine.py:12)`: the last line of the user's code that led there, wherever it was raised."""
    text = " ".join(f"{type(error).__name__}: {_words(error)}".split())
    if isinstance(error, SyntaxError):
        return f"{text.partition(' (')[0]} ({error.filename}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith((*_INSTALLED, "<"))]
    last = (own or frames)[-1]
    return f"{text} ({last.filename}:{last.lineno})"


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be shown)"
