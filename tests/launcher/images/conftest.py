import pytest

from nemotron.images.credentials import Keyring
from nemotron.images.reference import Reference, parse
from nemotron.images.registry import Registry, RegistrySettings
from tests.fakes.registry import FakeRegistry


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def client(clock):
    """Makes clients, and closes them."""
    made = []

    def make(settings: RegistrySettings | None = None, **fields) -> Registry:
        made.append(Registry(settings or RegistrySettings(**fields), sleep=clock.sleep, clock=clock))
        return made[-1]

    yield make
    for registry in made:
        registry.close()


@pytest.fixture
def fake():
    """Starts fake registries, each with the image team/harness:1.0, and stops them."""
    running = []

    def start(**rules) -> FakeRegistry:
        registry = FakeRegistry(**rules).__enter__()
        running.append(registry)
        registry.image = registry.push("team/harness", "1.0", platforms=["linux/amd64", "linux/arm64/v8"])
        return registry

    yield start
    for registry in running:
        registry.__exit__()


def harness(registry: FakeRegistry, version: str = ":1.0") -> Reference:
    return parse(f"{registry.host}/team/harness{version}")


def login(registry: FakeRegistry, **entry: str) -> Keyring:
    """What docker login leaves."""
    return Keyring(({"auths": {registry.host: entry}},))
