"""requests.jsonl: what the endpoint is asked, after all changes."""

from nemo_evaluator.proxy.exchange import Ask, Reply, Request
from nemo_evaluator.proxy.linelog import LineLog


class RequestLog:
    def __init__(self, log: LineLog) -> None:
        self._log = log

    async def __call__(self, request: Request, ask: Ask) -> Reply:
        if not self._log.is_full:
            self._log.write({"method": request.method, "path": request.path, "payload": request.payload})
        return await ask(request)

    async def close(self) -> None:
        self._log.close()
