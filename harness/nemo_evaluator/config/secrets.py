"""The secrets of a config, so that they can be kept out of whatever is printed."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, SecretStr

from nemo_evaluator.masking import QUERY, SHORTEST_SECRET, USERINFO, is_secret_key


def secret_values(config: BaseModel) -> list[str]:
    """All that must appear nowhere: keys, tokens in headers, passwords in URLs."""
    found = {value for value in _secrets_in(config.model_dump()) if len(value) >= SHORTEST_SECRET}
    return sorted(found, key=len, reverse=True)


def _secrets_in(value: Any, is_secret: bool = False) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _secrets_in(item, is_secret or is_secret_key(str(key)))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_in(item, is_secret)
    elif isinstance(value, str) and is_secret:
        yield value
        yield value.split(" ")[-1]  # the token of `Bearer TOKEN`
    elif isinstance(value, str):
        for userinfo in USERINFO.findall(value):
            yield from (userinfo, userinfo.split(":", 1)[-1])
        yield from (match["value"] for match in QUERY.finditer(value) if is_secret_key(match["key"]))
