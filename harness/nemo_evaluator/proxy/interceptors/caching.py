"""An answered request is never asked again: not by a harness that retries, not by a task that is resumed."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from nemo_evaluator.proxy.exchange import Ask, Reply, Request
from nemo_evaluator.proxy.store import KEY_BYTES, AnswerStore


class Caching:
    """By content: path, model, question and every parameter, in any order. The host is left out, so that answers
    survive a server that moved. Requests that are alike and in flight together become one.

    Kept are whole answers only; streams pass by. A benchmark that asks the same again to sample another answer needs
    a seed in each request, or use_caching false.
    """

    def __init__(self, store: AnswerStore, *, reuses: bool) -> None:
        self._store = store
        self._reuses = reuses
        self._flights: dict[bytes, asyncio.Future[Reply | None]] = {}

    async def __call__(self, request: Request, ask: Ask) -> Reply:
        if request.method != "POST" or request.payload is None or request.is_stream:
            return await ask(request)
        key = key_of(request)
        while (flight := self._flights.get(key)) is not None:
            if (reply := await asyncio.shield(flight)) is not None:
                return replace(reply, is_cached=True, seconds=0.0)
        if self._reuses and (kept := self._store.get(key)) is not None:
            return Reply(200, kept, is_cached=True)
        return await self._fly(key, request, ask)

    async def close(self) -> None:
        self._store.close()

    async def _fly(self, key: bytes, request: Request, ask: Ask) -> Reply:
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await ask(request)
            if request.payload is not None and is_whole(reply, request.payload):
                self._store.put(key, reply.body)
            flight.set_result(reply)
            return reply
        finally:
            del self._flights[key]
            if not flight.done():  # cancelled or broken: the next in line asks
                flight.set_result(None)


def key_of(request: Request) -> bytes:
    content = orjson.dumps(request.payload, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(request.path.encode() + b"\n" + content, digest_size=KEY_BYTES).digest()


def is_whole(reply: Reply, asked: Mapping[str, Any]) -> bool:
    """An answer in the shape of the API, and not cut off before the length that was asked for."""
    if reply.status != 200 or (data := reply.json()) is None or data.get("error"):
        return False
    if "choices" not in data:
        return bool(data.get("data"))
    choices = data["choices"]
    return (
        isinstance(choices, list)
        and bool(choices)
        and all(isinstance(choice, dict) and not choice.get("error") for choice in choices)
        and not is_cut_short(data, asked)
    )


def is_cut_short(data: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """`length` before max_tokens: the server ran out of context or of room, and may not the next time."""
    limit = asked.get("max_tokens") or asked.get("max_completion_tokens")
    used = (data.get("usage") or {}).get("completion_tokens")
    if not isinstance(limit, int) or not isinstance(used, int) or len(data["choices"]) > 1:
        return False
    return data["choices"][0].get("finish_reason") == "length" and used < limit
