"""Masks for passwords and tokens, which never reach a screen or a log."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings

_HIDDEN = "***"
_IN_ADDRESS = re.compile(r"(://[^:/@\s]*):[^@/\s]+@")
_SERVER_TOKEN = re.compile(rb"(;token=)[^;&\s'\"\\\])>]+")
_TOKEN_TAIL = re.compile(rb";(?:t(?:o(?:k(?:e(?:n(?:=[^;&\s'\"\\\])>]*)?)?)?)?)?)?$")
_TAIL_BYTES = 512
_SECRET_LENGTH_MIN = 6
_IN_PARAMETERS = re.compile(r"(?i)\b(\w*(?:token|password|passwd|secret|key)\w*)=([^;&\s]+)")


def masked_value(model: type[BaseSettings], name: str, value: Any) -> Any:
    """Return a setting's value as JSON can say it; what is secret in it is replaced by ``***``."""
    extra = model.model_fields[name].json_schema_extra
    if isinstance(extra, dict) and extra.get("secret") is True:
        return _HIDDEN if value else value
    if isinstance(value, str | Path):
        return mask_secrets(str(value))
    return value


def mask_secrets(text: str) -> str:
    """Return a text without the passwords and tokens that addresses in it carry."""
    return _IN_PARAMETERS.sub(rf"\1={_HIDDEN}", _IN_ADDRESS.sub(rf"\1:{_HIDDEN}@", text))


def secret_values(settings: BaseSettings) -> list[str]:
    """Return the values of the settings that are secret."""
    fields = type(settings).model_fields.items()
    return [
        str(getattr(settings, name))
        for name, field in fields
        if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("secret") is True
    ]


class SecretMask:
    """Replaces known secrets, and the tokens of Spark servers in any address, by ``***``.

    Used for what a script prints or raises: only known secrets are replaced, since any text may occur there.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if len(secret) >= _SECRET_LENGTH_MIN}
        self._known = [item.encode() for item in sorted(known, key=len, reverse=True)]
        self._held = b""

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        return self.content(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def values(self, value: Any) -> Any:
        """Return a value of JSON, each text in it without secrets."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.values(item) for key, item in value.items()}
        return [self.values(item) for item in value] if isinstance(value, list | tuple) else value

    def take(self, chunk: bytes) -> bytes:
        """Return the next piece of a stream; an end that may begin a secret is kept for the next call.

        An empty piece is the end of the stream.
        """
        content, self._held = self._held + chunk, b""
        if chunk:
            kept = max((_overlap(content, item) for item in self._known), default=0)
            begun = _TOKEN_TAIL.search(content, max(0, len(content) - _TAIL_BYTES))
            kept = max(kept, len(content) - begun.start() if begun else 0)
            cut = len(content) - kept
            content, self._held = content[:cut], content[cut:]
        return self.content(content)

    def content(self, content: bytes) -> bytes:
        """Return the bytes without secrets."""
        for item in self._known:
            content = content.replace(item, _HIDDEN.encode())
        return _SERVER_TOKEN.sub(rb"\1***", content)


def _overlap(content: bytes, secret: bytes) -> int:
    """Return how many bytes at the content's end are the beginning of the secret, and not all of it."""
    longest = min(len(secret) - 1, len(content))
    return next((size for size in range(longest, 0, -1) if content.endswith(secret[:size])), 0)
