"""Findings of pydantic as one line each: file and line, key, value, what is accepted."""

import types
from collections.abc import Iterable
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from nemo_evaluator.config.checks import Problem
from nemo_evaluator.config.document import Document
from nemo_evaluator.config.keypath import KeyPath, did_you_mean, dotted
from nemo_evaluator.config.unavailable import unavailable_key, unavailable_type
from nemo_evaluator.errors import UsageError
from nemo_evaluator.masking import is_secret_key, masked

UNIONS = (Union, types.UnionType)

LONGEST_SHOWN = 60
"""Characters of a value that an error repeats."""


def usage_error(problems: Iterable[Problem], document: Document) -> UsageError:
    """All problems, the first as the headline."""
    return UsageError("\n".join(f"{document.origin(path)}: {dotted(path)} {text}" for path, text in problems))


def problems_in(error: ValidationError, model: type[BaseModel], data: Any) -> list[Problem]:
    """In the order of the model; below a wrong `type` all else is noise, because it belongs to another type."""
    found = [_problem(detail, model, data) for detail in error.errors(include_url=False)]
    wrong_types = [path[:-1] for path, _ in found if path[-1:] == ("type",)]
    return [
        (path, text)
        for path, text in found
        if path[-1:] == ("type",) or not any(path[: len(parent)] == parent for parent in wrong_types)
    ]


def _problem(detail: ErrorDetails, model: type[BaseModel], data: Any) -> Problem:
    path = _without_tag(detail["loc"])
    if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
        path = (*path, "type")
    if detail["type"] == "extra_forbidden":
        return path, _unknown_key(path, model, data)
    if detail["type"] == "missing":
        return _missing(path, model, data)
    return path, _wrong_value(detail, path, model, data)


def _without_tag(loc: tuple[int | str, ...]) -> KeyPath:
    """Pydantic puts the chosen kind of solver into the location, where the user's file has no such level."""
    match loc:
        case ("benchmarks", index, "solver", _, *rest):
            return ("benchmarks", index, "solver", *rest)
    return loc


def _child(data: Any, part: int | str) -> Any:
    if isinstance(data, dict):
        return data.get(part)
    return data[part] if isinstance(data, list) and isinstance(part, int) and part < len(data) else None


def _value_at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = _child(data, part)
    return data


def _unknown_key(path: KeyPath, model: type[BaseModel], data: Any) -> str:
    known = list(_section_at(model, path[:-1], data).model_fields)
    if instead := unavailable_key(path):
        return f"is not available in this version: {instead}"
    return f"is not a known key{did_you_mean(str(path[-1]), known)}; accepted: {', '.join(known)}"


def _missing(path: KeyPath, model: type[BaseModel], data: Any) -> Problem:
    if isinstance(path[-1], int):  # an element of a tuple
        return path[:-1], f"is {_shown(_value_at(data, path[:-1]), path)}; a list of two numbers is expected"
    accepted = _accepted(path, model, data)
    return path, f"is missing; accepted: {accepted}" if accepted else "is missing"


def _section_at(model: type[BaseModel], path: KeyPath, data: Any) -> type[BaseModel]:
    """The model class that describes the mapping at `path`."""
    annotation: Any = model
    for part in path:
        data = _child(data, part)
        annotation = _branch(_annotation_below(annotation, part), data)
    return annotation  # type: ignore[no-any-return]


def _annotation_below(annotation: Any, part: int | str) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.model_fields[str(part)].annotation
    return get_args(annotation)[-1]  # list[X] and dict[str, X]


def _branch(annotation: Any, data: Any) -> Any:
    """The member of a union that the mapping's `type` names, or the union when it names none."""
    if get_origin(annotation) not in UNIONS:
        return annotation
    tag = data.get("type") if isinstance(data, dict) else None
    members = [member for member in get_args(annotation) if tag in get_args(member.model_fields["type"].annotation)]
    return members[0] if members else annotation


def _accepted(path: KeyPath, model: type[BaseModel], data: Any) -> str:
    """The values of a field that has a fixed list of them; for the `type` of a union, those of all members."""
    section = _section_at(model, path[:-1], data)
    members = get_args(section) if get_origin(section) in UNIONS else (section,)
    annotations = [member.model_fields[str(path[-1])].annotation for member in members]
    return ", ".join(value for each in annotations if get_origin(each) is Literal for value in get_args(each))


EXPECTED = {
    "string_type": "text is expected (put a number into quotes)",
    "string_too_short": "it must not be empty",
    "too_short": "at least one is needed",
    "int_type": "a whole number is expected",
    "int_parsing": "a whole number is expected",
    "int_from_float": "a whole number is expected",
    "float_type": "a number is expected",
    "float_parsing": "a number is expected",
    "finite_number": "a finite number is expected",
    "bool_type": "true or false is expected",
    "bool_parsing": "true or false is expected",
    "list_type": "a list is expected",
    "tuple_type": "a list of two numbers is expected",
    "too_long": "a list of two numbers is expected",
    "dict_type": "a mapping of keys is expected",
    "model_type": "a mapping of keys is expected",
    "model_attributes_type": "a mapping of keys is expected",
}
"""Pydantic's error types in the words of a config; its own message serves for the rest."""

BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
}


def _wrong_value(detail: ErrorDetails, path: KeyPath, model: type[BaseModel], data: Any) -> str:
    kind, context, value = detail["type"], detail.get("ctx", {}), _value_at(data, path)
    shown = f"is {_shown(value, path)}"
    if kind == "union_tag_not_found":
        return f"is missing; accepted: {_accepted(path, model, data)}"
    if kind in ("literal_error", "union_tag_invalid"):
        instead = unavailable_type(path, value)
        refusal = f", which is not available in this version: {instead}" if instead else ""
        return f"{shown}{refusal}; accepted: {_accepted(path, model, data)}"
    if kind in BOUNDS:
        bound, words = BOUNDS[kind]
        return f"{shown}; it must be {words} {context[bound]:g}"
    if kind == "value_error":
        return f"{shown}; {context['error']}"
    return f"{shown}; {EXPECTED.get(kind) or detail['msg']}"


def _shown(value: Any, path: KeyPath) -> str:
    """The value as it may be repeated: on one line, not endless, and never a secret."""
    if any(is_secret_key(str(part)) for part in path):
        return "a value that is not shown"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(masked(value))
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."
