from collections.abc import Iterator

import pytest

from nemo_evaluator.environments import registry


@pytest.fixture(autouse=True)
def forget_benchmarks() -> Iterator[None]:
    """What a test registers is gone after it; the bundled ones stay, because they are imported once per process."""
    yield
    for name, entry in list(registry._REGISTERED.items()):
        if not entry.place.module.startswith(registry.BUNDLED_PACKAGE):
            del registry._REGISTERED[name]
