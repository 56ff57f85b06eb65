import pytest

from tests.launcher.transport.ssh_world import SshWorld


@pytest.fixture
def world(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    world = SshWorld(home)
    yield world
    world.close()
