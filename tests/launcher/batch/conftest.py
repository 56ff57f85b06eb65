import contextlib

import pytest

from tests.launcher.batch.node import Node


@pytest.fixture
def node(tmp_path):
    with contextlib.closing(Node(tmp_path / "job")) as node:
        yield node
