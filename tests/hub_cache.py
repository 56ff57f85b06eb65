"""A cache of the hub's library, made by hand: what a check of it looks at, and nothing more."""

from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def snapshot(home: Path, repository: str, kind: str = "datasets", revision: str = "main") -> dict[str, str]:
    """As a download leaves it; gives the environment that names it."""
    folder = home / "hub" / "--".join([kind, *repository.split("/")])
    (folder / "snapshots" / COMMIT).mkdir(parents=True)
    (folder / "snapshots" / COMMIT / "tokenizer_config.json").write_text("{}")
    (folder / "refs").mkdir()
    (folder / "refs" / revision).write_text(COMMIT)
    return {"HF_HOME": str(home)}


def prepared(home: Path, repository: str) -> dict[str, str]:
    """As `datasets` leaves what it has read."""
    folder = home / "datasets" / repository.replace("/", "___").lower() / "main" / "0.0.0" / COMMIT
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text("{}")
    return {"HF_HOME": str(home)}
