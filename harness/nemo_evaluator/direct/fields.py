"""Reading a JSON document key by key: what is missing, unknown or of another type is named with its place."""

from __future__ import annotations

from typing import Any, Callable

from nemo_evaluator.direct.errors import Refused


class Fields:
    """One object of the plan. `done` refuses the keys that nobody took."""

    def __init__(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise Refused(f"{place} is {_kind(value)}, an object is needed: submit again to get a new plan.")
        self._values = dict(value)
        self._place = place

    def text(self, key: str) -> str:
        value: str = self._take(key, "text", lambda value: isinstance(value, str))
        return value

    def optional_text(self, key: str) -> str | None:
        """Text or null; empty counts as unset."""
        value: str | None = self._take(key, "text or null", lambda value: value is None or isinstance(value, str))
        return value or None

    def flag(self, key: str) -> bool:
        value: bool = self._take(key, "true or false", lambda value: isinstance(value, bool))
        return value

    def optional_flag(self, key: str) -> bool | None:
        value: bool | None = self._take(
            key, "true, false or null", lambda value: value is None or isinstance(value, bool)
        )
        return value

    def number(self, key: str) -> int:
        value: int = self._take(key, "a whole number", lambda value: type(value) is int)
        return value

    def items(self, key: str) -> list[Any]:
        value: list[Any] = self._take(key, "a list", lambda value: isinstance(value, list))
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        value: dict[str, Any] = self._take(key, "an object", lambda value: isinstance(value, dict))
        return value

    def nested(self, key: str) -> Fields:
        return Fields(self.mapping(key), self.place(key))

    def place(self, key: str) -> str:
        return f"{self._place}.{key}"

    def done(self) -> None:
        if self._values:
            raise Refused(
                f"{self._place} has unknown keys ({', '.join(sorted(self._values))}): "
                "the launcher and this runner are of different versions, submit again with the runner it ships."
            )

    def _take(self, key: str, wanted: str, fits: Callable[[Any], bool]) -> Any:
        if key not in self._values:
            raise Refused(f"{self._place}.{key} is missing, {wanted} is needed: submit again to get a new plan.")
        value = self._values.pop(key)
        if not fits(value):
            raise Refused(f"{self._place}.{key} is {_kind(value)}, {wanted} is needed: submit again to get a new plan.")
        return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
