"""failed_requests.jsonl: requests that ended in an error, with what the endpoint said."""

from nemo_evaluator.proxy.exchange import Ask, Reply, Request
from nemo_evaluator.proxy.linelog import LineLog

SHOWN_BYTES = 2048


class FailureLog:
    def __init__(self, log: LineLog) -> None:
        self._log = log

    async def __call__(self, request: Request, ask: Ask) -> Reply:
        reply = await ask(request)
        if reply.status >= 400:
            said = reply.body[:SHOWN_BYTES].decode("utf-8", "replace")
            self._log.write(
                {
                    "path": request.path,
                    "payload": request.payload,
                    "status": reply.status,
                    "attempts": reply.attempts,
                    "said": said,
                }
            )
        return reply

    async def close(self) -> None:
        self._log.close()
