"""An image's layers into a folder: several at once, each resumed where it broke off, each what its digest says."""

import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import IO

from nemotron.errors import LauncherError
from nemotron.images.manifests import Layer, RegistryUnreachable
from nemotron.images.reference import Reference
from nemotron.images.registry import Registry

AT_ONCE = 4
ATTEMPTS = 5
"""Broken connections in a row that brought nothing."""
LONGEST_WAIT_SECONDS = 30.0

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Stopped(LauncherError):
    """Another layer failed, or the user had enough."""


def download(
    registry: Registry,
    reference: Reference,
    layers: Sequence[Layer],
    folder: Path,
    use: Callable[[Layer, Path], None] = lambda layer, path: None,
    arrived: Callable[[int], None] = lambda size: None,
) -> None:
    """`use` gets each layer when it is there and right, `arrived` the number of bytes as they come; both in the thread
    that brought them."""
    stop = threading.Event()

    def fetch(layer: Layer) -> None:
        path = path_of(layer, folder)
        _Download(registry, reference, layer, stop, arrived).into(path)
        use(layer, path)

    largest_first = sorted({layer.digest: layer for layer in layers}.values(), key=lambda layer: -layer.size)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="layer") as pool:
        running = [pool.submit(fetch, layer) for layer in largest_first]
        try:
            for future in running:
                future.add_done_callback(lambda done: None if done.cancelled() or not done.exception() else stop.set())
            wait(running)
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    failed = [error for future in running if (error := future.exception())]
    for error in sorted(failed, key=lambda error: isinstance(error, Stopped)):
        raise error


def path_of(layer: Layer, folder: Path) -> Path:
    if not _DIGEST.fullmatch(layer.digest):
        raise RegistryUnreachable(f"a layer has the digest {layer.digest!r}, which is no sha256: push the image anew.")
    return folder / layer.digest.replace(":", "-")


class _Download:
    def __init__(
        self,
        registry: Registry,
        reference: Reference,
        layer: Layer,
        stop: threading.Event,
        arrived: Callable[[int], None],
    ) -> None:
        self._registry, self._reference, self._layer = registry, reference, layer
        self._stop, self._arrived = stop, arrived

    def into(self, path: Path) -> None:
        """Once more from the start when what came is not what the digest says."""
        for last in False, True:
            if self._fetch(path) == self._layer.digest:
                return
            path.unlink()
            if last:
                raise RegistryUnreachable(
                    f"{self._reference}: layer {self._layer.digest} does not arrive as its digest says: "
                    "try again, or push the image anew."
                )

    def _fetch(self, path: Path) -> str:
        """The digest of what arrived; a connection that breaks off is taken up where it did."""
        came, failures = hashlib.sha256(), 0
        with path.open("wb") as file:
            while (had := file.tell()) < self._layer.size:
                with self._registry.layer(self._reference, self._layer, had) as chunks:
                    problem = self._receive(chunks, file, came)
                if file.tell() > self._layer.size:
                    return "more than was announced"
                failures = 0 if file.tell() > had else failures + 1
                if failures == ATTEMPTS:
                    raise problem
                if file.tell() < self._layer.size:
                    self._pause(failures)
        return f"sha256:{came.hexdigest()}"

    def _receive(self, chunks: Iterator[bytes], file: IO[bytes], came: "hashlib._Hash") -> RegistryUnreachable:
        """Why there is no more of it."""
        try:
            for chunk in chunks:
                self._go_on()
                file.write(chunk)
                came.update(chunk)
                self._arrived(len(chunk))
                if file.tell() > self._layer.size:
                    break
        except RegistryUnreachable as error:
            return error
        return RegistryUnreachable(f"layer {self._layer.digest} ends too early: try again.")

    def _pause(self, failures: int) -> None:
        self._registry.sleep(min(2.0**failures / 2, LONGEST_WAIT_SECONDS))
        self._go_on()

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise Stopped("stopped.")
