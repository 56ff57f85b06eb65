"""The native way to a .sqsh: bring the layers, lay them over each other by name, stream the files that are seen."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from nemotron.images.manifests import Layer, Manifest, RegistryUnreachable, digest_of
from nemotron.images.progress import Progress
from nemotron.images.reference import Reference
from nemotron.images.registry import Registry
from nemotron.images.sqsh.archive import opened
from nemotron.images.sqsh.download import download, path_of
from nemotron.images.sqsh.enroot_files import ImageConfig, enroot_files
from nemotron.images.sqsh.squashfs import find_mksquashfs, squashing
from nemotron.images.sqsh.stream import Extra, write_tree
from nemotron.images.sqsh.tree import Folder, ImageDamaged, LayerTree, Looks, Tree, merge

CONFIG_LIMIT = 16 * 1024 * 1024

Say = Callable[[str], None]


def build(
    registry: Registry,
    image: Reference,
    manifest: Manifest,
    target: Path,
    work: Path,
    environ: Mapping[str, str],
    say: Say,
) -> None:
    """`work` is an empty folder for the layers. `target` is whole and on disk when this returns."""
    program = find_mksquashfs(environ)
    config = read_config(registry, image, manifest.config)
    say(f"downloading {len(manifest.layers)} layers, {manifest.size / 1e6:,.0f} MB")
    tree = _fetch_tree(registry, image, manifest, work, Progress("downloaded", manifest.size, say))
    extras = _with_extras(tree, config, str(image))
    say("writing the image")
    layers = [path_of(layer, work) for layer in manifest.layers]
    with squashing(program, target, tree.root.looks or Looks()) as stream:
        write_tree(tree, layers, extras, stream)
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_config(registry: Registry, image: Reference, config: Layer) -> ImageConfig:
    with registry.layer(image, config) as chunks:
        body = b""
        for chunk in chunks:
            body += chunk
            if len(body) > CONFIG_LIMIT:
                break
    if digest_of(body) != config.digest:
        raise RegistryUnreachable(f"{image}: its config is not what its digest says: try again.")
    try:
        return ImageConfig.of(json.loads(body))
    except (ValueError, TypeError, AttributeError):
        raise ImageDamaged(f"{image}: its config says nothing about how to start it: push the image anew.") from None


def _fetch_tree(registry: Registry, image: Reference, manifest: Manifest, work: Path, progress: Progress) -> Tree:
    """Each layer is read when it is there, while others are still on their way."""
    grown: dict[int, LayerTree] = {}

    def read(layer: Layer, path: Path) -> None:
        for place, same in enumerate(manifest.layers):
            if same.digest == layer.digest:
                grown[place] = _layer_tree(place, path)

    download(registry, image, manifest.layers, work, read, progress.add)
    tree = Tree()
    for place in range(len(manifest.layers)):
        merge(tree, grown.pop(place))
    return tree


def _layer_tree(place: int, path: Path) -> LayerTree:
    tree = LayerTree(place)
    with opened(path) as archive:
        for number, entry in enumerate(archive):
            tree.add(number, entry)
    return tree


def _with_extras(tree: Tree, config: ImageConfig, source: str) -> tuple[Extra, ...]:
    """Makes room for them, and the working directory."""
    tree.folder(config.working_dir)
    etc = tree.root.children.setdefault("etc", Folder())
    if not isinstance(etc, Folder):
        raise ImageDamaged("/etc of the image is no folder: import it with --method enroot.")
    extras = enroot_files(config, source)
    for extra in extras:
        etc.children.pop(extra.path.removeprefix("etc/"), None)
    return extras
