from tests.launcher.conftest import user
from tests.nel import server, server_process

__all__ = ["server", "server_process", "user"]
