"""Values that nobody can read or change without the key. Standard library only, Python 3.6 and later: the batch step
opens what the launcher sealed.

Encrypt, then authenticate: SHAKE-256 of key and nonce as key stream, HMAC-SHA-256 over nonce and text. A key is for one
job.
"""

import hashlib
import hmac
import json
import os
from typing import Dict

NONCE, TAG = 16, 32


class Unreadable(Exception):
    """Another key, or not what was sealed."""


def new_key() -> str:
    return os.urandom(32).hex()


def seal(values: Dict[str, str], key: str) -> bytes:
    nonce = os.urandom(NONCE)
    body = nonce + _mixed(json.dumps(values).encode("utf-8"), key, nonce)
    return _tag(body, key) + body


def unseal(content: bytes, key: str) -> Dict[str, str]:
    tag, body = content[:TAG], content[TAG:]
    if not hmac.compare_digest(tag, _tag(body, key)):
        raise Unreadable
    values = json.loads(_mixed(body[NONCE:], key, body[:NONCE]).decode("utf-8"))
    return {str(name): str(value) for name, value in values.items()}


def _mixed(text: bytes, key: str, nonce: bytes) -> bytes:
    stream = hashlib.shake_256(_derived("stream", key) + nonce).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, stream))


def _tag(body: bytes, key: str) -> bytes:
    return hmac.new(_derived("tag", key), body, "sha256").digest()


def _derived(purpose: str, key: str) -> bytes:
    return hmac.new(key.encode("ascii"), purpose.encode("ascii"), "sha256").digest()
