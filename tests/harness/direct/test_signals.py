"""Told to stop once, twice, and by the same event over two ways."""

import os
import signal

import pytest

from nemo_evaluator.direct.signals import Stop


@pytest.fixture
def told():
    """Gives signals to this process at chosen times, and tells what a Stop makes of them."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    now = [0.0]
    stop = Stop(clock=lambda: now[0])
    stop.listen()

    def tell(*signals: tuple[float, int]) -> Stop:
        for now[0], number in signals:
            os.kill(os.getpid(), number)
        return stop

    yield tell
    for number, handler in handlers.items():
        signal.signal(number, handler)
    os.close(stop.reader)
    os.close(stop._writer)


@pytest.mark.parametrize(
    ("second", "hurries"),
    [
        ((0.1, signal.SIGTERM), False),
        ((4.9, signal.SIGTERM), False),
        ((5.1, signal.SIGTERM), True),
        ((0.5, signal.SIGINT), False),
        ((1.1, signal.SIGINT), True),
    ],
)
def test_a_second_signal_hurries_unless_it_is_the_echo_of_the_first(told, second, hurries):
    stop = told((0.0, signal.SIGTERM), second)
    assert (stop.is_requested, stop.hurries, stop.exit_code) == (True, hurries, 75)


def test_once_in_a_hurry_always_in_a_hurry(told):
    assert told((0.0, signal.SIGINT), (2.0, signal.SIGINT), (2.1, signal.SIGTERM)).hurries


def test_ctrl_c_has_a_code_of_its_own(told):
    assert told((0.0, signal.SIGINT)).exit_code == 130
