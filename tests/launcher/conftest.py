import pytest

from tests.launcher.nemotron_process import User


@pytest.fixture
def user(tmp_path):
    return User.at(tmp_path)
