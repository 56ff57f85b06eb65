"""What a task reads from the Hugging Face hub, and whether a cache on disk has it already."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DATASETS = {
    r"(adlr_)?arc_(challenge|easy)": "allenai/ai2_arc",
    r"hellaswag$": "Rowan/hellaswag",
    r"(adlr_)?gsm8k(?!_platinum)": "openai/gsm8k",
    r"mgsm": "juletxara/mgsm",
    r"ifeval": "google/IFEval",
    r"mmlu_prox(?!_lite)": "li-lab/MMLU-ProX",
    r"milu_": "ai4bharat/MILU",
    r"(adlr_)?gpqa": "Idavidrein/gpqa",
    r"humaneval_instruct": "openai/openai_humaneval",
    r"hle$": "cais/hle",
}
"""Beginnings of task names -> their dataset, where every harness that has the task reads the same; a suite says it for
others with `datasets`."""
REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")
DEFAULT_REVISION = "main"
TRUE = ("1", "true", "yes", "on")
OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")


@dataclass(frozen=True, slots=True)
class Item:
    """A dataset or a tokenizer, at a revision."""

    kind: str
    """datasets or models, as the hub calls them."""
    id: str
    revision: str | None = None

    @classmethod
    def dataset(cls, text: str) -> "Item":
        """From `org/name` or `org/name@revision`."""
        identifier, _, revision = text.partition("@")
        return cls("datasets", identifier, revision or None)

    @property
    def what(self) -> str:
        return "dataset" if self.kind == "datasets" else "tokenizer"

    def __str__(self) -> str:
        return f"{self.id}@{self.revision}" if self.revision else self.id

    @property
    def names(self) -> tuple[str, ...]:
        """Harnesses also ask for what has moved to an organisation by its old name of one word."""
        return (self.id, self.id.rpartition("/")[2]) if self.kind == "datasets" and "/" in self.id else (self.id,)


def datasets_of(task: str) -> tuple[str, ...]:
    """Those this project knows of; none for a task that it does not know."""
    name = task.rpartition(".")[2]
    return tuple(dataset for beginning, dataset in DATASETS.items() if re.match(beginning, name))


def is_offline(environ: Mapping[str, str]) -> bool:
    """As the hub's own library reads its variables."""
    return any(environ.get(name, "").strip().lower() in TRUE for name in OFFLINE)


def is_cached(item: Item, environ: Mapping[str, str]) -> bool:
    return any(_has_snapshot(item, name, environ) or _is_prepared(item, name, environ) for name in item.names)


def cache_home(environ: Mapping[str, str]) -> Path:
    """HF_HOME, as the library finds it."""
    if own := environ.get("HF_HOME"):
        return Path(own).expanduser()
    return Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "/"), ".cache")) / "huggingface"


def _has_snapshot(item: Item, name: str, environ: Mapping[str, str]) -> bool:
    """The revision's commit is written in refs; a commit names itself."""
    hub = Path(environ.get("HF_HUB_CACHE") or cache_home(environ) / "hub")
    folder = hub / "--".join([item.kind, *name.split("/")])
    reference = folder / "refs" / (item.revision or DEFAULT_REVISION)
    commit = reference.read_text().strip() if reference.is_file() else item.revision
    snapshot = folder / "snapshots" / (commit or "none")
    return snapshot.is_dir() and any(snapshot.iterdir())


def _is_prepared(item: Item, name: str, environ: Mapping[str, str]) -> bool:
    """As `datasets` keeps what it has read: without a revision any commit will do, as it does for the library."""
    if item.kind != "datasets":
        return False
    cache = Path(environ.get("HF_DATASETS_CACHE") or cache_home(environ) / "datasets")
    wanted = re.sub(r"[_/]", "", name).lower()
    folders = [path for path in cache.glob("*") if path.name.replace("_", "").lower() == wanted]
    return any(any(folder.glob(f"*/*/{item.revision or '*'}/dataset_info.json")) for folder in folders)
