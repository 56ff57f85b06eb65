"""How many requests are answered, in a file and, if wanted, told to somebody else."""

import asyncio
import logging
from pathlib import Path

import aiohttp

from nemo_evaluator.proxy.exchange import Ask, Reply, Request

logger = logging.getLogger(__name__)

PATIENCE = aiohttp.ClientTimeout(total=10)


class Progress:
    """At every `interval`th answer and at the end: the number into `path`, {"samples_processed": n} to `url`. One call
    at a time: a slow listener skips numbers and never slows the task."""

    def __init__(self, path: Path, url: str | None, interval: int) -> None:
        self._path, self._url, self._interval = path, url, interval
        self._done = self._told = 0
        self._telling: asyncio.Task[None] | None = None

    async def __call__(self, request: Request, ask: Ask) -> Reply:
        reply = await ask(request)
        if reply.status == 200:
            self._done += 1
            if self._done % self._interval == 0 and (self._telling is None or self._telling.done()):
                self._telling = asyncio.create_task(self._tell())
        return reply

    async def close(self) -> None:
        if self._telling is not None:
            await self._telling
        if self._told < self._done:
            await self._tell()

    async def _tell(self) -> None:
        done = self._told = self._done
        await asyncio.to_thread(self._path.write_text, f"{done}\n")
        if self._url is None:
            return
        try:
            async with (
                aiohttp.ClientSession(timeout=PATIENCE) as session,
                session.post(self._url, json={"samples_processed": done}) as reply,
            ):
                reply.raise_for_status()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            logger.warning("progress_tracking_url does not take the progress: %s", type(error).__name__)
