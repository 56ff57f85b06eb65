"""responses.jsonl: what the endpoint answers, before any change."""

from nemo_evaluator.proxy.exchange import Ask, Reply, Request
from nemo_evaluator.proxy.linelog import LineLog


class ResponseLog:
    def __init__(self, log: LineLog) -> None:
        self._log = log

    async def __call__(self, request: Request, ask: Ask) -> Reply:
        reply = await ask(request)
        if not self._log.is_full and reply.chunks is None:
            self._log.write(
                {
                    "path": request.path,
                    "status": reply.status,
                    "cached": reply.is_cached,
                    "seconds": round(reply.seconds, 4),
                    "response": reply.json() or reply.body.decode("utf-8", "replace"),
                }
            )
        return reply

    async def close(self) -> None:
        self._log.close()
