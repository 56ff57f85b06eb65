"""Datasets of the Hugging Face hub, at a known commit.

`datasets` downloads and prepares. Once its Arrow file is in the cache, that file is memory-mapped here directly, because
importing `datasets` takes longer (about a second) than evaluating a small benchmark. What it would have to decode
(images, audio) or what is not in the cache goes through `datasets`.

One short request finds the current commit first. So a dead hub costs seconds instead of a chain of retries, a run on
cached data works without it, and the revision in the provenance is always a commit.
"""

import hashlib
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
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
        commit = self._commit()
        table = self._cached_table(commit) if commit else None
        if table is not None:
            return HubRows(self, commit, table)
        return self._download(commit)

    def _commit(self) -> str | None:
        """The commit that `revision` means now, as the hub says, else as the cache remembers."""
        from huggingface_hub import constants

        if self.revision and _COMMIT.fullmatch(self.revision):
            return self.revision
        if constants.HF_HUB_OFFLINE:
            return self._remembered_commit()
        try:
            return self._ask_commit(constants.ENDPOINT)
        except urllib.error.HTTPError as error:
            # Missing or forbidden: `datasets` knows the user's token and says what is wrong.
            return None if error.code < 500 else self._remembered_commit()
        except (OSError, ValueError) as error:
            if commit := self._remembered_commit():
                return commit
            reason = getattr(error, "reason", error)
            raise UsageError(
                f"Dataset {self.id!r}: the hub at {constants.ENDPOINT} cannot be reached ({reason}) and the cache "
                f"{constants.HF_HOME} does not hold it. Set HF_ENDPOINT to a mirror, or HF_HOME to a cache that has it."
            ) from None

    def _ask_commit(self, endpoint: str) -> str:
        url = f"{endpoint}/api/datasets/{self.id}/revision/{quote(self.revision or 'main', safe='')}"
        token = os.environ.get("HF_TOKEN")
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
        with urllib.request.urlopen(request, timeout=HUB_TIMEOUT_S) as reply:
            return str(json.load(reply)["sha"])

    def _remembered_commit(self) -> str | None:
        from huggingface_hub import constants

        folder = "--".join(["datasets", *self.id.split("/")])
        ref = Path(constants.HF_HUB_CACHE, folder, "refs", self.revision or "main")
        return ref.read_text().strip() if ref.is_file() else None

    def _cached_table(self, commit: str) -> Any | None:
        """What `datasets` prepared before from this very commit, if it is all there and needs no decoding."""
        import pyarrow as pa  # type: ignore[import-untyped]

        for folder in self._prepared_folders(commit):
            info = json.loads((folder / "dataset_info.json").read_text())
            if self.split not in info["splits"] or not _are_plain(info["features"]):
                continue
            stem = f"{info['dataset_name']}-{self.split}"
            files = sorted([*folder.glob(f"{stem}.arrow"), *folder.glob(f"{stem}-*-of-*.arrow")])
            if not files:
                continue
            table = pa.concat_tables([pa.ipc.open_stream(pa.memory_map(str(file))).read_all() for file in files])
            if table.num_rows == info["splits"][self.split]["num_examples"]:
                return table
        return None

    def _prepared_folders(self, commit: str) -> Iterator[Path]:
        from huggingface_hub import constants

        cache = Path(os.environ.get("HF_DATASETS_CACHE") or Path(constants.HF_HOME, "datasets")).expanduser()
        wanted = self.id.replace("/", "").replace("_", "").lower()  # `datasets` writes CamelCase as camel_case
        for folder in cache.glob("*"):
            if folder.name.replace("_", "").lower() == wanted:
                yield from (
                    info.parent for info in folder.glob(f"{self.config or 'default'}/*/{commit}/dataset_info.json")
                )

    def _download(self, commit: str | None) -> "HubRows":
        import datasets

        datasets.disable_progress_bars()
        datasets.logging.set_verbosity_error()
        try:
            dataset = datasets.load_dataset(self.id, self.config, split=self.split, revision=commit or self.revision)
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            raise UsageError(self._why_not(error)) from error
        prepared = Path(dataset.cache_files[0]["filename"]).parent.name if dataset.cache_files else ""
        return HubRows(self, prepared if _COMMIT.fullmatch(prepared) else commit, dataset)

    def _why_not(self, error: Exception) -> str:
        from huggingface_hub import constants

        reason = " ".join(str(error).split())[:300]
        where = f"config={self.config or 'none'}, split={self.split}, revision={self.revision or 'main'}"
        step = (
            "HF_HUB_OFFLINE is set: unset it to download, or set HF_HOME to a cache that has it"
            if constants.HF_HUB_OFFLINE
            else "Check the name, config and split; a gated or private dataset needs HF_TOKEN, a mirror HF_ENDPOINT"
        )
        return f"Dataset {self.id!r} ({where}) cannot be loaded: {reason.rstrip('.')}. {step}."


class HubRows:
    """Rows of an Arrow table on disk, or of a `datasets.Dataset`, which decodes them."""

    def __init__(self, source: HubDataset, commit: str | None, data: Any) -> None:
        self._source = source
        self._commit = commit
        self._data = data
        self._table = data.data.table if hasattr(data, "features") else data
        self._is_decoded = self._table is not data

    def __len__(self) -> int:
        return int(self._data.num_rows)

    def __getitem__(self, idx: int) -> dict[str, Any]:
        position = range(len(self))[idx]
        if self._is_decoded:
            return dict(self._data[position])
        return dict(self._table.slice(position, 1).to_pylist()[0])

    def provenance(self) -> dict[str, Any]:
        source = self._source
        return {
            "dataset": source.id,
            "config": source.config,
            "split": source.split,
            "revision": self._commit,
            "content_hash": self._content_hash(),
        }

    def _content_hash(self) -> str:
        """Of the rows as JSON, so that it does not depend on how a version of `datasets` lays out its files."""
        digest = hashlib.sha256()
        if self._table.nbytes > HASHED_BYTES:
            source = self._source
            digest.update(f"{source.id}\0{source.config}\0{source.split}\0{self._commit}".encode())
            return digest.hexdigest()
        for batch in self._table.to_batches(max_chunksize=1000):
            for row in batch.to_pylist():
                digest.update(orjson.dumps(row, default=repr))
        return digest.hexdigest()


def _are_plain(features: Any) -> bool:
    """Whether Arrow's own values are what `datasets` would return."""
    if isinstance(features, dict):
        kind = features.get("_type")
        is_plain = not isinstance(kind, str) or kind in PLAIN_FEATURES
        return is_plain and all(map(_are_plain, features.values()))
    return not isinstance(features, list) or all(map(_are_plain, features))
