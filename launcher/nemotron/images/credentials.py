"""Who to be at a registry, from the files and helpers that `docker login` and `podman login` leave."""

import base64
import binascii
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemotron.errors import UsageError
from nemotron.images.reference import DEFAULT_REGISTRY, Reference

NGC_REGISTRY, NGC_USER, NGC_KEY = "nvcr.io", "$oauthtoken", "NGC_API_KEY"
IDENTITY_TOKEN_USER = "<token>"
"""What a helper says in the place of a user when the secret is an identity token."""
HELPER_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Credential:
    """A user with a password, or an identity token that buys tokens."""

    username: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Keyring:
    """What the login files say, first file first, read once."""

    files: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> "Keyring":
        files = tuple(_read(path) for path in login_files(environ) if path.is_file())
        return cls(files, environ)

    def credential_for(self, reference: Reference) -> Credential | None:
        for content in self.files:
            if found := self._in(content, reference):
                return found
        if reference.registry == NGC_REGISTRY and (key := self.environ.get(NGC_KEY)):
            return Credential(NGC_USER, key)
        return None

    def _in(self, content: Mapping[str, Any], reference: Reference) -> Credential | None:
        """A helper of this registry, else the general one, else what stands in the file."""
        helpers = content.get("credHelpers", {})
        for name in _names_of(reference):
            if helper := helpers.get(name) or content.get("credsStore"):
                if found := ask_helper(helper, name, self.environ):
                    return found
            elif entry := content.get("auths", {}).get(name):
                return _credential_of(entry, name)
        return None


def login_files(environ: Mapping[str, str]) -> Iterator[Path]:
    home = Path(environ.get("HOME", "/nonexistent"))
    if path := environ.get("REGISTRY_AUTH_FILE"):
        yield Path(path)
    yield Path(environ.get("DOCKER_CONFIG") or home / ".docker") / "config.json"
    if runtime := environ.get("XDG_RUNTIME_DIR"):
        yield Path(runtime) / "containers/auth.json"
    yield Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "containers/auth.json"


def ask_helper(helper: str, name: str, environ: Mapping[str, str]) -> Credential | None:
    """`docker-credential-HELPER get`, the name on its standard input; None when it knows no such registry."""
    command = f"docker-credential-{helper}"
    path = shutil.which(command, path=environ.get("PATH"))
    if path is None:
        raise UsageError(
            f"{name}: {command} is named in the docker config but is not on PATH: install it, or log in anew."
        )
    try:
        done = subprocess.run(
            [path, "get"], input=name, env=dict(environ), text=True, capture_output=True, timeout=HELPER_SECONDS
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        raise UsageError(f"{name}: {command} does not answer ({type(error).__name__}): try `{command} get`.") from None
    if done.returncode != 0:
        return None
    try:
        said = json.loads(done.stdout)
        username, secret = str(said["Username"]), str(said["Secret"])
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{name}: {command} answers in no form that is known: try `{command} get`.") from None
    return Credential(identity_token=secret) if username == IDENTITY_TOKEN_USER else Credential(username, secret)


def _names_of(reference: Reference) -> Iterator[str]:
    """Keys that may hold the credential: podman's are as narrow as a repository, docker's are hosts or URLs."""
    parts = reference.repository.split("/")
    for length in range(len(parts), 0, -1):
        yield "/".join([reference.registry, *parts[:length]])
    yield reference.registry
    yield f"https://{reference.registry}"
    if reference.registry == DEFAULT_REGISTRY:
        yield f"https://index.{DEFAULT_REGISTRY}/v1/"


def _credential_of(entry: Mapping[str, str], name: str) -> Credential | None:
    if token := entry.get("identitytoken"):
        return Credential(identity_token=token)
    if encoded := entry.get("auth"):
        try:
            username, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise UsageError(f"{name}: the login in the docker config cannot be read: log in anew.") from None
        return Credential(username, password.rstrip("\0"))
    if entry.get("username"):
        return Credential(entry["username"], entry.get("password", ""))
    return None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text() or "{}")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error}): mend it, or log in anew.") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path} holds no JSON object: mend it, or log in anew.")
    return content
