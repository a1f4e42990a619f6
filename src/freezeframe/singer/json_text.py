"""JSON whose numbers stay as they were written, so that no digit is lost between a tap and a column."""

from __future__ import annotations

import json
from typing import Any, NoReturn


class JsonNumber(str):
    """A number of a JSON text, by the letters that it was written with."""

    __slots__ = ()

    @property
    def is_integer(self) -> bool:
        """Whether it is written without a point and an exponent."""
        return self.isdigit() or self[1:].isdigit()


def parse_json(line: bytes) -> Any:
    """The value of a JSON text in UTF-8, its numbers as ``JsonNumber``.

    Raises:
        ValueError, RecursionError: it is not JSON, is nested too deeply, or holds half of a surrogate pair.
    """
    value = _DECODER.decode(line.decode())
    if b"\\u" in line:
        json_text(value).encode()
    return value


def json_text(value: Any) -> str:
    """A value of ``parse_json`` as JSON, each number by its own letters."""
    if isinstance(value, JsonNumber):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json_text(name)}: {json_text(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=JsonNumber, parse_int=JsonNumber)
