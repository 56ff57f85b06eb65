"""How `nel` runs a coroutine: on uvloop, with a garbage collector that knows what the process is for."""

import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

YOUNG_OBJECTS = 50_000
"""A run makes many objects and few cycles: collecting every 700 allocations, as Python does, costs a fifth of it."""


def run(main: Coroutine[Any, Any, T]) -> T:
    gc.freeze()  # modules and configuration stay to the end
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
    return uvloop.run(main)
