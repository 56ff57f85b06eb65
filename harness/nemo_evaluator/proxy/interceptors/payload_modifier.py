"""Parameters that an endpoint does not take, takes by another name, or must be given."""

from collections.abc import Collection, Mapping
from typing import Any

from nemo_evaluator.proxy.exchange import Ask, Reply, Request


class PayloadModifier:
    """Removes, then adds, then renames; at the top level of the payload."""

    def __init__(self, add: Mapping[str, Any], remove: Collection[str], rename: Mapping[str, str]) -> None:
        self._add, self._remove, self._rename = add, frozenset(remove), rename

    async def __call__(self, request: Request, ask: Ask) -> Reply:
        if request.payload is not None:
            request = request.with_payload(self._modified(request.payload))
        return await ask(request)

    async def close(self) -> None:
        """Nothing is held."""

    def _modified(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        left = {**{key: value for key, value in payload.items() if key not in self._remove}, **self._add}
        return {self._rename.get(key, key): value for key, value in left.items()}
