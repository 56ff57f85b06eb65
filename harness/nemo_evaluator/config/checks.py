"""What no single key can tell: names that must exist, values that contradict each other."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from nemo_evaluator.config.keypath import KeyPath, did_you_mean
from nemo_evaluator.config.model import ApiService, Benchmark, EvalConfig
from nemo_evaluator.masking import is_secret_key, masked_url

Problem = tuple[KeyPath, str]
"""Where, and what is wrong there as the rest of a sentence that begins with the key."""

VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")

RESERVED_SERVICE_NAMES = frozenset({"default", "none", ""})


def problems_of(config: EvalConfig) -> Iterator[Problem]:
    for name, service in config.services.items():
        if name in RESERVED_SERVICE_NAMES:
            yield ("services", name), "is a reserved name; call the service something else, such as model"
        yield from _service_problems(("services", name), service)
    for index, benchmark in enumerate(config.benchmarks):
        yield from _benchmark_problems(("benchmarks", index), benchmark, config)


def _service_problems(path: KeyPath, service: ApiService) -> Iterator[Problem]:
    if reason := _url_fault(service.url):
        yield (*path, "url"), reason
    elif (asked := protocol_of(service.url)) and asked != service.protocol:
        yield (*path, "url"), f"ends like protocol {asked}, but protocol is {service.protocol}; make them agree"
    yield from _names_for_values(path, service)
    if service.reasoning_pattern is not None:
        try:
            re.compile(service.reasoning_pattern)
        except re.error as error:
            yield (*path, "reasoning_pattern"), f"is no regular expression: {error}"


def _names_for_values(path: KeyPath, service: ApiService) -> Iterator[Problem]:
    """`api_key: HF_TOKEN` would send the word HF_TOKEN as the key."""
    credentials: dict[KeyPath, str] = {
        ("proxy", "extra_headers", name): text
        for name, text in service.proxy.extra_headers.items()
        if is_secret_key(name)
    }
    if service.api_key is not None:
        credentials["api_key",] = service.api_key.get_secret_value()
    for place, text in credentials.items():
        if VARIABLE_NAME.fullmatch(text.removeprefix("Bearer ")):
            yield (*path, *place), "holds what looks like the name of a variable; write ${NAME} for its value"


def _url_fault(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        is_web_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_web_address = False
    if is_web_address:
        return None
    return f"is {masked_url(url)!r}, which is no web address; write http://HOST or https://HOST with its path"


def protocol_of(url: str) -> str | None:
    """The protocol that the last part of the path stands for; None when the path does not say."""
    path = urlsplit(url).path.rstrip("/")
    if path.endswith("/chat/completions"):
        return "chat_completions"
    if path.endswith("/responses"):
        return "responses"
    return "completions" if path.endswith("/completions") else None


def _benchmark_problems(path: KeyPath, benchmark: Benchmark, config: EvalConfig) -> Iterator[Problem]:
    service = benchmark.solver.service
    if service is not None and service not in config.services:
        known = ", ".join(config.services) or "none"
        hint = did_you_mean(service, config.services)
        yield (*path, "solver", "service"), f"is {service!r}, which is no service{hint}; services: {known}"
    if benchmark.problem_range and benchmark.problem_range[0] >= benchmark.problem_range[1]:
        start, end = benchmark.problem_range
        yield (*path, "problem_range"), f"is [{start}, {end}], which holds no problem; the end must be above the start"
