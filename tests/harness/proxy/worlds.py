"""A harness, the proxy and an endpoint: the first is the test, the last the fake server, both on real sockets."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from nemo_evaluator.proxy.config import AdapterConfig
from nemo_evaluator.proxy.server import Proxy
from nemo_evaluator.proxy.upstream import Endpoint
from tests.fakes.openai_server import FakeServer

KEY = "sk-not-a-real-key"


@dataclass
class Said:
    status: int
    text: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        return orjson.loads(self.text)

    @property
    def content(self) -> str:
        return self.json["choices"][0]["message"]["content"]


@dataclass
class Harness:
    """Asks as hosted harnesses do."""

    proxy: Proxy
    session: aiohttp.ClientSession

    async def ask(
        self, question: str = "Why?", *, key: str | None = KEY, url: str | None = None, **payload: Any
    ) -> Said:
        body = {"model": "m", "messages": [{"role": "user", "content": question}], **payload}
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        data = io.BytesIO(orjson.dumps(body))
        async with self.session.post(url or self.proxy.url, data=data, headers=headers) as reply:
            return Said(reply.status, await reply.text(), dict(reply.headers))

    async def ask_all(self, questions: list[str], **payload: Any) -> list[Said]:
        return list(await asyncio.gather(*(self.ask(question, **payload) for question in questions)))


@asynccontextmanager
async def harness(
    server: FakeServer,
    folder: Path,
    *,
    max_retries: int = 0,
    patience: float = 10.0,
    parallelism: int | None = None,
    **config: Any,
) -> AsyncIterator[Harness]:
    """`config` is the adapter_config; caching is off unless it says otherwise."""
    adapter = AdapterConfig.of({"use_caching": False, **config})
    url = f"{server.url}/chat/completions"
    endpoint = Endpoint(url, KEY, parallelism, max_retries, patience)
    folder.mkdir(exist_ok=True)
    async with Proxy(adapter, endpoint, folder, {}) as proxy, aiohttp.ClientSession() as session:
        yield Harness(proxy, session)


def rows(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]
