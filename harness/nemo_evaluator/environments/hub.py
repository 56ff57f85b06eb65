"""Datasets of the Hugging Face hub, at a known commit.

`datasets` downloads and prepares. Once its Arrow file is in the cache, that file is memory-mapped here directly: merely
importing `datasets` takes about a second. What it would have to decode (images, audio) is read through it.

One short request finds the current commit first. So a dead hub costs seconds instead of a chain of retries, a run on
cached data works without it, and the revision in the provenance is always a commit.
"""

import hashlib
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import orjson

from nemo_evaluator.errors import UsageError

HUB_TIMEOUT_S = 5.0
HASHED_BYTES = 64 * 2**20
"""Larger tables are identified by their commit alone."""
DEFAULT_SPLIT = "test"
PLAIN_FEATURES = frozenset({"Value", "List", "LargeList", "Sequence", "ClassLabel"})

_ID = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class HubDataset:
    """One split of one configuration; `revision` is a branch, a tag or a commit."""

    id: str
    config: str | None = None
    split: str = DEFAULT_SPLIT
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> "HubDataset | None":
        """From `hf://org/name?config=...&split=...&revision=...` or `org/name`; None for anything else."""
        identifier, _, query = text.removeprefix("hf://").partition("?")
        if not _ID.fullmatch(identifier):
            return None
        options = dict(parse_qsl(query))
        if unknown := options.keys() - {"config", "split", "revision"}:
            raise UsageError(f"Dataset {text!r}: unknown option {min(unknown)!r}. Accepted: config, split, revision.")
        return cls(identifier, **options)

    def load(self) -> "HubRows":
        pinned = self.pinned()
        if (table := pinned._prepared_table()) is not None:
            return HubRows(pinned, table)
        dataset = self._download()
        pinned = replace(pinned, revision=_commit_of(dataset) or pinned.revision)
        table = pinned._prepared_table()
        return HubRows(pinned, dataset if table is None else table)

    def pinned(self) -> "HubDataset":
        """With `revision` as the commit that it means now: as the hub says, else as the cache remembers."""
        if self.revision and _COMMIT.fullmatch(self.revision):
            return self
        remembered = self._remembered_commit()
        if _offline():
            return replace(self, revision=remembered or self.revision)
        try:
            return replace(self, revision=self._ask_commit())
        except urllib.error.HTTPError as error:
            # Missing or forbidden: `datasets` knows the user's token and says what is wrong.
            return replace(self, revision=remembered) if error.code >= 500 and remembered else self
        except OSError as error:
            if remembered is None:
                raise UsageError(self._unreachable(error)) from None
            return replace(self, revision=remembered)

    def _ask_commit(self) -> str:
        from huggingface_hub import constants

        url = f"{constants.ENDPOINT}/api/datasets/{self.id}/revision/{quote(self.revision or 'main', safe='')}"
        token = os.environ.get("HF_TOKEN")
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
        with urllib.request.urlopen(request, timeout=HUB_TIMEOUT_S) as reply:
            return str(orjson.loads(reply.read())["sha"])

    def _remembered_commit(self) -> str | None:
        from huggingface_hub import constants

        folder = "--".join(["datasets", *self.id.split("/")])
        ref = Path(constants.HF_HUB_CACHE, folder, "refs", self.revision or "main")
        if ref.is_file():
            return ref.read_text().strip()
        if self.revision is not None:
            return None
        prepared = max(self._prepared_infos(self.config or "*", "*"), key=_prepared_at, default=None)
        return prepared.parent.name if prepared else None

    def _prepared_table(self) -> Any | None:
        """What `datasets` prepared before from this very commit, if it is all there and needs no decoding."""
        for info_file in self._prepared_infos(self.config or "default", self.revision or "unknown"):
            info = orjson.loads(info_file.read_bytes())
            if self.split in info["splits"] and _are_plain(info["features"]):
                stem = f"{info['dataset_name']}-{self.split}"
                files = sorted(f for shape in (".arrow", "-*-of-*.arrow") for f in info_file.parent.glob(stem + shape))
                table = _map_tables(files) if files else None
                if table is not None and table.num_rows == info["splits"][self.split]["num_examples"]:
                    return table
        return None

    def _prepared_infos(self, config: str, commit: str) -> Iterator[Path]:
        from huggingface_hub import constants

        cache = Path(os.environ.get("HF_DATASETS_CACHE") or Path(constants.HF_HOME, "datasets")).expanduser()
        wanted = self.id.replace("/", "").replace("_", "").lower()  # `datasets` writes CamelCase as camel_case
        for folder in cache.glob("*"):
            if folder.name.replace("_", "").lower() == wanted:
                yield from folder.glob(f"{config}/*/{commit}/dataset_info.json")

    def _download(self) -> Any:
        self._check_reachable()
        import datasets

        datasets.disable_progress_bars()
        datasets.logging.set_verbosity_error()
        try:
            return datasets.load_dataset(self.id, self.config, split=self.split, revision=self.revision)
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            raise UsageError(self._why_not(error)) from error

    def _check_reachable(self) -> None:
        """Seconds here, where `datasets` would retry for half a minute and more."""
        if _offline():
            return
        try:
            self._ask_commit()
        except urllib.error.HTTPError:
            return
        except OSError as error:
            raise UsageError(self._unreachable(error)) from None

    def _unreachable(self, error: OSError) -> str:
        from huggingface_hub import constants

        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return (
            f"Dataset {self.id!r}: the hub at {constants.ENDPOINT} cannot be reached ({reason}) and the cache in "
            f"{constants.HF_HOME} does not hold it. Set HF_ENDPOINT to a mirror, or HF_HOME to a cache that has it."
        )

    def _why_not(self, error: Exception) -> str:
        reason = " ".join(str(error).split())[:300]
        where = f"config={self.config or 'none'}, split={self.split}, revision={self.revision or 'main'}"
        step = (
            "HF_HUB_OFFLINE is set: unset it to download, or set HF_HOME to a cache that has it"
            if _offline()
            else "Check the name, config and split; a gated or private dataset needs HF_TOKEN, a mirror HF_ENDPOINT"
        )
        return f"Dataset {self.id!r} ({where}) cannot be loaded: {reason.rstrip('.')}. {step}."


class HubRows:
    """Rows of an Arrow table on disk, or of a `datasets.Dataset`, which decodes them."""

    def __init__(self, source: HubDataset, data: Any) -> None:
        self._source = source
        self._data = data
        self._table = data.data.table if hasattr(data, "features") else data
        self._is_decoded = self._table is not data
        self._columns = dict(zip(self._table.column_names, self._table.columns, strict=True))

    def __len__(self) -> int:
        return int(self._data.num_rows)

    def __getitem__(self, idx: int) -> dict[str, Any]:
        position = range(len(self))[idx]
        if self._is_decoded:
            return dict(self._data[position])
        return {name: column[position].as_py() for name, column in self._columns.items()}

    def provenance(self) -> dict[str, Any]:
        source = self._source
        return {
            "dataset": source.id,
            "config": source.config,
            "split": source.split,
            "revision": source.revision,
            "content_hash": self._content_hash(),
        }

    def _content_hash(self) -> str:
        """Of the rows as JSON, so that it does not depend on how a version of `datasets` lays out its files."""
        digest = hashlib.sha256()
        if self._table.nbytes > HASHED_BYTES:
            source = self._source
            digest.update(f"{source.id}\0{source.config}\0{source.split}\0{source.revision}".encode())
            return digest.hexdigest()
        for batch in self._table.to_batches(max_chunksize=1000):
            for row in batch.to_pylist():
                digest.update(orjson.dumps(row, default=repr))
        return digest.hexdigest()


def _offline() -> bool:
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def _prepared_at(info_file: Path) -> float:
    return info_file.stat().st_mtime


def _map_tables(files: Sequence[Path]) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]

    return pa.concat_tables([pa.ipc.open_stream(pa.memory_map(str(file))).read_all() for file in files])


def _commit_of(dataset: Any) -> str | None:
    """`datasets` prepares each commit in a folder of its own."""
    folder = Path(dataset.cache_files[0]["filename"]).parent.name if dataset.cache_files else ""
    return folder if _COMMIT.fullmatch(folder) else None


def _are_plain(features: Any) -> bool:
    """Whether Arrow's own values are what `datasets` would return."""
    if isinstance(features, dict):
        kind = features.get("_type")
        is_plain = not isinstance(kind, str) or kind in PLAIN_FEATURES
        return is_plain and all(map(_are_plain, features.values()))
    return not isinstance(features, list) or all(map(_are_plain, features))
