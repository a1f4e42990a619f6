"""What may be shown of a setting: passwords and tokens never reach a screen, a log or a bundle."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings

_HIDDEN = "***"
_IN_ADDRESS = re.compile(r"(://[^:/@\s]*):[^@/\s]+@")
_IN_PARAMETERS = re.compile(r"(?i)\b(\w*(?:token|password|passwd|secret|key)\w*)=([^;&\s]+)")


def masked_value(model: type[BaseSettings], name: str, value: Any) -> Any:
    """A setting's value as JSON can say it; what is secret in it is replaced by ``***``."""
    extra = model.model_fields[name].json_schema_extra
    if isinstance(extra, dict) and extra.get("secret") is True:
        return _HIDDEN if value else value
    if isinstance(value, str | Path):
        return mask_secrets(str(value))
    return value


def mask_secrets(text: str) -> str:
    """A text without the passwords and tokens that addresses in it carry."""
    return _IN_PARAMETERS.sub(rf"\1={_HIDDEN}", _IN_ADDRESS.sub(rf"\1:{_HIDDEN}@", text))
