"""Prompt templates: `{column}` is filled in, every other brace is text.

A prompt often shows the model a piece of JSON, and a row often holds one; neither may break rendering. So a brace
means something only around the name of a column: `{question}`, `{choices[0]}`, `{price:.2f}`. As in `str.format`, `{{`
and `}}` are literal braces.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemo_evaluator.errors import UsageError

TEMPLATE_FILES = (".txt", ".md")

_TOKEN = re.compile(
    r"""
    (?P<open>\{\{) | (?P<close>\}\})
    | \{ (?P<column>[^\W\d]\w*)
         (?P<rest> (?:\[[^\[\]{}]*\] | \.[^\W\d]\w*)* (?:![rsa])? (?::[^\s{}"']+)? )
      \}
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Field:
    """A place that a column fills."""

    column: str
    text: str
    """The field as written, braces included."""

    @property
    def is_plain(self) -> bool:
        return self.text == f"{{{self.column}}}"


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt, split once into text and fields."""

    parts: tuple[str | Field, ...]

    @classmethod
    def parse(cls, text: str) -> "Template":
        parts: list[str | Field] = []
        position = open_pairs = 0
        for token in _TOKEN.finditer(text):
            parts.append(text[position : token.start()])
            position = token.end()
            if token["column"]:
                parts.append(Field(token["column"], token[0]))
            elif token["open"]:
                open_pairs += 1
                parts.append("{")
            else:  # a `}}` that closes no `{{` is the end of a nested JSON object
                parts.append("}" if open_pairs else "}}")
                open_pairs = max(0, open_pairs - 1)
        parts.append(text[position:])
        return cls(tuple(part for part in parts if part))

    def render(self, row: Mapping[str, Any]) -> str:
        return "".join(part if isinstance(part, str) else _fill(part, row) for part in self.parts)


def read_template(prompt: str, folder: Path) -> str:
    """The template's text: `prompt` itself, or the content of the file it names (beside the benchmark, else here)."""
    if "\n" in prompt or not prompt.endswith((*TEMPLATE_FILES, ".jinja", ".j2")):
        return prompt
    if not prompt.endswith(TEMPLATE_FILES):
        raise UsageError(
            f"Prompt file {prompt!r}: templates are {' or '.join(TEMPLATE_FILES)} files with {{column}} fields. "
            "For anything more, build the prompt in seed_fn."
        )
    for path in (folder / prompt, Path(prompt)):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise UsageError(f"No prompt file {prompt!r} in {folder} or {Path.cwd()}. Give its path, or the prompt itself.")


def _fill(field: Field, row: Mapping[str, Any]) -> str:
    if field.column in row:
        return str(row[field.column]) if field.is_plain else _format(field, row)
    if not field.is_plain:
        return field.text
    raise UsageError(
        f"The prompt asks for {field.text} but the row has no such column; it has: {', '.join(row)}. "
        f"Name one of these, map it with field_mapping, or write {{{field.text}}} for literal braces."
    )


def _format(field: Field, row: Mapping[str, Any]) -> str:
    try:
        return field.text.format_map(row)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        value = repr(row[field.column])[:80]
        raise UsageError(f"The prompt's {field.text} does not fit the column's value {value}: {error}.") from None
