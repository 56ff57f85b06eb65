"""Ends a task at the first refusal that asking again cannot mend."""

from collections.abc import Callable

from nemo_evaluator.proxy.exchange import Ask, Reply, Request

MENDS_ITSELF = frozenset({408, 409, 425, 429})


class ClientErrors:
    def __init__(self, stop: Callable[[str], None]) -> None:
        self._stop = stop

    async def __call__(self, request: Request, ask: Ask) -> Reply:
        reply = await ask(request)
        if 400 <= reply.status < 500 and reply.status not in MENDS_ITSELF:
            self._stop(f"the endpoint refused a request with HTTP {reply.status} (use_raise_client_errors)")
        return reply

    async def close(self) -> None:
        """Nothing is held."""
