"""What is wrong with a profile, in words for whoever wrote it."""

from collections.abc import Iterable, Iterator, Sequence

from pydantic_core import ErrorDetails

from nemotron.errors import nearest

MAY_HOLD_SECRETS = {"env_vars", "secret_vars", "client_id", "client_secret_name", "additional_parameters"}
"""Keys whose values are not shown when they are wrong."""


def problems(errors: Sequence[ErrorDetails], known: Iterable[str]) -> Iterator[str]:
    """`known` are the keys that there are."""
    for error in errors:
        path = [str(part) for part in error["loc"] if part != "[key]"]
        if error["type"] == "extra_forbidden" and len(path) == 1:
            yield f"unknown key {path[0]!r}{_instead(path[0], known)}"
        else:
            yield f"{'.'.join(path)}{_given(path[0], error)}: {error['msg'].removeprefix('Value error, ')}"


def _given(key: str, error: ErrorDetails) -> str:
    """` 'lots'`, unless it may be a secret in the place of its name, or is said already."""
    value = error["input"]
    is_said = not isinstance(value, str | int | float) or (isinstance(value, str) and repr(value) in error["msg"])
    return "" if is_said or key in MAY_HOLD_SECRETS else f" {value!r}"


def _instead(key: str, known: Iterable[str]) -> str:
    guess = nearest(key, known)
    return f".{guess}" if guess else f", known are {', '.join(sorted(known))}"
