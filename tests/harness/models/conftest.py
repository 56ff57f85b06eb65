import pytest
from tenacity.wait import wait_none

from nemo_evaluator.models import ModelClient, RetryPolicy
from tests.fakes.openai_server import FakeServer

AT_ONCE = RetryPolicy(wait=wait_none())


@pytest.fixture
def client_of():
    """A client of a fake server that retries without waiting, and whose environment is empty."""

    def make(server: FakeServer | str, **parameters) -> ModelClient:
        url = server if isinstance(server, str) else server.url
        parameters = {"model": "fake-model", "retry": AT_ONCE, "environ": {}, **parameters}
        return ModelClient(url, **parameters)

    return make
