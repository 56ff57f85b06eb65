"""The files of an image by name, layer upon layer, as an engine's overlay shows them. Names only, no content.

A file is a number: its layer, and its place in that layer's archive. Two names with one number are hard links.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from tarfile import TarInfo

from nemotron.errors import LauncherError

WHITEOUT, OPAQUE, RESERVED = ".wh.", ".wh..wh..opq", ".wh..wh."
SYMLINKS_IN_A_ROW = 40
"""As many as Linux follows."""
XATTR = "SCHILY.xattr."
OF_AN_OVERLAY = (f"{XATTR}trusted.overlay.", f"{XATTR}user.overlay.")
"""What an engine wrote for itself."""

Parts = tuple[str, ...]


class ImageDamaged(LauncherError):
    """The layers contradict themselves."""


@dataclass(frozen=True, slots=True)
class Looks:
    """Of a folder."""

    mode: int = 0o755
    mtime: int = 0
    xattrs: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Folder:
    children: "dict[str, Folder | int]" = field(default_factory=dict)
    looks: Looks | None = None
    """None while only its content was named."""
    hidden: set[str] = field(default_factory=set)
    """Names below which this layer deletes what older ones have."""
    is_opaque: bool = False
    """Hides all that older layers have in it."""


class Tree:
    def __init__(self) -> None:
        self.root = Folder()
        self.symlinks: dict[int, str] = {}

    def find(self, path: str) -> Folder | int | None:
        """What has this name; symlinks on the way to it are followed, inside the tree."""
        parts = self._resolved(parts_of(path))
        here: Folder | int | None = self.root
        for part in parts:
            here = here.children.get(part) if isinstance(here, Folder) else None
        return here

    def folder(self, path: str) -> Folder:
        """Made where it is missing, also in the place of a file."""
        here = self.root
        for part in self._resolved(parts_of(path), follow_last=True):
            below = here.children.get(part)
            if not isinstance(below, Folder):
                below = here.children[part] = Folder()
            here = below
        return here

    def put(self, path: str, node: int) -> None:
        *parents, name = parts_of(path)
        self.folder("/".join(parents)).children[name] = node

    def _resolved(self, parts: Parts, *, follow_last: bool = False) -> Parts:
        """Without symlinks. `..` never leads above the root."""
        todo, done, followed = list(reversed(parts)), list[str](), 0
        here: list[Folder | int | None] = [self.root]
        while todo:
            part = todo.pop()
            if part == "..":
                del done[-1:]
                del here[len(done) + 1 :]
                continue
            folder = here[-1]
            child = folder.children.get(part) if isinstance(folder, Folder) else None
            if isinstance(child, int) and child in self.symlinks and (todo or follow_last):
                if (followed := followed + 1) > SYMLINKS_IN_A_ROW:
                    raise ImageDamaged(f"/{'/'.join(parts)}: symlinks lead in circles: build the image anew.")
                target = self.symlinks[child]
                if target.startswith("/"):
                    done, here = [], [self.root]
                todo += reversed(_split(target))
                continue
            done.append(part)
            here.append(child)
        return tuple(done)


class LayerTree(Tree):
    """Of one layer, by itself; entries in the order of its archive."""

    def __init__(self, layer: int) -> None:
        super().__init__()
        self._layer = layer
        self.borrowed: list[tuple[str, str]] = []
        """Hard links to files of older layers: name, target."""

    def add(self, number: int, entry: TarInfo) -> None:
        parts = parts_of(entry.name)
        name = parts[-1] if parts else ""
        if name.startswith(WHITEOUT):
            self._delete(parts[:-1], name)
        elif entry.isdir():
            self.folder(entry.name).looks = Looks(entry.mode & 0o7777, int(entry.mtime), xattrs_of(entry))
        elif not parts:
            raise ImageDamaged("an entry of a layer has no name: build the image anew.")
        elif entry.islnk():
            self._link(entry.name, entry.linkname)
        elif entry.isreg() or entry.issym() or entry.isdev():
            self.put(entry.name, key := self._layer << 32 | number)
            if entry.issym():
                self.symlinks[key] = entry.linkname

    def _delete(self, parents: Parts, name: str) -> None:
        folder = self.folder("/".join(parents))
        if name == OPAQUE:
            folder.is_opaque = True
        elif not name.startswith(RESERVED):
            folder.hidden.add(name.removeprefix(WHITEOUT))

    def _link(self, name: str, target: str) -> None:
        found = self.find(target)
        if isinstance(found, Folder):
            raise ImageDamaged(f"/{name} is a hard link to the folder {target}: build the image anew.")
        if found is None:
            self.borrowed.append((name, target))
        else:
            self.put(name, found)


def merge(base: Tree, layer: LayerTree) -> None:
    """Lays the layer over `base`, which it changes."""
    for name, target in layer.borrowed:
        found = base.find(target)
        if not isinstance(found, int):
            raise ImageDamaged(f"/{name} is a hard link to {target}, which no layer has: build the image anew.")
        layer.put(name, found)
    base.symlinks |= layer.symlinks
    todo = [(base.root, layer.root)]
    while todo:
        lower, upper = todo.pop()
        if upper.is_opaque:
            lower.children.clear()
        for name in upper.hidden:
            lower.children.pop(name, None)
        lower.looks = upper.looks or lower.looks
        for name, node in upper.children.items():
            below = lower.children.get(name)
            if isinstance(node, Folder) and isinstance(below, Folder):
                todo.append((below, node))
            else:
                lower.children[name] = node


def folders(tree: Tree) -> Iterator[tuple[str, Folder]]:
    """Each with its path, the root's is empty, parents first."""
    todo = [("", tree.root)]
    while todo:
        path, folder = todo.pop()
        yield path, folder
        prefix = f"{path}/" if path else ""
        todo += [(prefix + name, node) for name, node in folder.children.items() if isinstance(node, Folder)]


def names(tree: Tree) -> dict[int, list[str]]:
    """Every file with all its names."""
    found: dict[int, list[str]] = {}
    for path, folder in folders(tree):
        prefix = f"{path}/" if path else ""
        for name, node in folder.children.items():
            if isinstance(node, int):
                found.setdefault(node, []).append(prefix + name)
    return found


def parts_of(path: str) -> Parts:
    """Of a name in an archive, which cannot leave the tree."""
    parts: list[str] = []
    for part in _split(path):
        if part == "..":
            del parts[-1:]
        else:
            parts.append(part)
    return tuple(parts)


def xattrs_of(entry: TarInfo) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value)
        for name, value in sorted(entry.pax_headers.items())
        if name.startswith(XATTR) and not name.startswith(OF_AN_OVERLAY)
    )


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
