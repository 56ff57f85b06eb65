"""What the job's environment holds: secrets by name, and how much of it the harness gets to see."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Mapping

from nemo_evaluator.direct.errors import Refused
from nemo_evaluator.direct.masking import secrets_of_url
from nemo_evaluator.direct.plan import Plan

SECRET_NAME = re.compile(
    r"(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|_KEY|_KEY_ID|CREDENTIALS?|_JWT|_AUTH_SOCK)$", re.IGNORECASE
)
WANTED_BY_HARNESSES = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY"}
"""They stay even when the plan does not name them: gated datasets, and harnesses that read only the latter."""
SHORTEST_GUESS = 12
"""Of variables that only look like secrets, short values are more likely words such as `false`."""
HEADER = re.compile(r"[!-~](?:[ -~]*[!-~])?")
"""What can be sent as a token; of others http.client shows the value when it refuses them."""
VISIBLE_BARS = {"TQDM_NCOLS": "100", "TQDM_NROWS": "40", "TQDM_MININTERVAL": "1"}
"""Harnesses run their command on a terminal of no size, where progress bars print nothing at all."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def endpoint_url(plan: Plan, environ: Mapping[str, str]) -> str:
    variable = plan.model.endpoint_url_variable
    if plan.model.endpoint_url:
        return plan.model.endpoint_url
    if variable is None:
        raise Refused("No endpoint URL: set EVAL_ENDPOINT_URL to the full URL, with /v1/completions or its like.")
    if not environ.get(variable):
        raise Refused(f"{variable}, which names the endpoint URL, is not set in the job: pass it as a secret.")
    return environ[variable]


def token(plan: Plan, environ: Mapping[str, str]) -> str | None:
    name = plan.model.api_key_name
    return environ.get(name) if name else None


def check_secrets(plan: Plan, environ: Mapping[str, str]) -> None:
    name = plan.model.api_key_name
    if name and not environ.get(name):
        raise Refused(
            f"{name}, the variable with the endpoint's token, is not set in the job: export it before you submit, "
            "or set EVAL_API_KEY_NAME=null for an endpoint without authentication."
        )
    if name and not HEADER.fullmatch(environ[name]):
        raise Refused(
            f"{name} holds a line break, a space at an end or another character that no HTTP header can carry: "
            "export the token alone."
        )
    missing = [name for name in plan.secrets if not environ.get(name)]
    if missing:
        raise Refused(f"{', '.join(missing)} not set in the job: export what the plan names before you submit.")


def secret_values(plan: Plan, environ: Mapping[str, str], url: str) -> list[str]:
    """Every value that may not reach a file."""
    named = {name for name in (*plan.secrets, plan.model.api_key_name) if name} | WANTED_BY_HARNESSES
    values = [value for name, value in environ.items() if name in named]
    guessed = [v for name, v in environ.items() if SECRET_NAME.search(name) and len(v) >= SHORTEST_GUESS]
    return [*values, *guessed, *secrets_of_url(url)]


def child_environment(plan: Plan, environ: Mapping[str, str], executable: Path) -> dict[str, str]:
    """For a harness, which may execute what a model wrote: only the secrets that it needs."""
    named = {*plan.secrets, plan.model.api_key_name} | WANTED_BY_HARNESSES
    hidden = {plan.model.endpoint_url_variable}
    child = {
        name: value
        for name, value in environ.items()
        if name not in hidden and (name in named or not SECRET_NAME.search(name))
    }
    if (key := token(plan, environ)) is not None:
        child.setdefault("OPENAI_API_KEY", key)
    # Harnesses call their own commands by name: those beside this one, whatever came first on PATH.
    child["PATH"] = os.pathsep.join([str(executable.parent), environ.get("PATH", os.defpath)])
    child.update(PYTHONNOUSERSITE="1", PYTHONUNBUFFERED="1")
    for name, value in VISIBLE_BARS.items():
        child.setdefault(name, value)
    for name in ("NO_PROXY", "no_proxy"):
        child[name] = ",".join(dict.fromkeys([*filter(None, environ.get(name, "").split(",")), *LOOPBACK]))
    return child
