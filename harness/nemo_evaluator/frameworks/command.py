"""From a command template to the line a shell runs. Pure.

A template is shell text with values put into it, some between double quotes. A value means itself: what stands
between quotes is escaped, so that no `$`, backtick or quote of a name is the shell's business. Outside of quotes
a value is words, as templates rely on (`extra.args`).
"""

import re
from typing import Any

from jinja2 import Environment, StrictUndefined, TemplateError, Undefined

from nemo_evaluator.errors import UsageError
from nemo_evaluator.frameworks.settings import RunConfig

MARK = re.compile("\x00(\\d+)\x00")
SPECIAL = re.compile(r'([\\$`"])')


def render(run: RunConfig) -> str:
    """Raises UsageError if the template asks for what nobody has said."""
    values: list[str] = []

    def marked(value: Any) -> Any:
        if isinstance(value, Undefined):
            return value
        values.append(str(value))
        return f"\x00{len(values) - 1}\x00"

    environment = Environment(undefined=StrictUndefined, finalize=marked, autoescape=False)
    context = run.model_dump()
    try:
        text = environment.from_string(run.command).render(context)
    except TemplateError as error:
        raise UsageError(
            f"The command of {run.config.type} cannot be made: {error}. Give it with --overrides config.params.extra…"
        ) from None
    return _filled(text, values)


def _filled(text: str, values: list[str]) -> str:
    filled, position, quote = "", 0, ""
    for match in MARK.finditer(text):
        before = text[position : match.start()]
        quote = _quote_after(before, quote)
        filled += before + _escaped(values[int(match[1])], quote)
        position = match.end()
    return filled + text[position:]


def _quote_after(text: str, quote: str) -> str:
    """The kind of quotes that are open after `text`, which began inside `quote`."""
    is_escaped = False
    for character in text:
        if is_escaped:
            is_escaped = False
        elif character == "\\" and quote != "'":
            is_escaped = True
        elif character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote = character
    return quote


def _escaped(value: str, quote: str) -> str:
    if quote == '"':
        return SPECIAL.sub(r"\\\1", value)
    return value.replace("'", "'\\''") if quote == "'" else value
