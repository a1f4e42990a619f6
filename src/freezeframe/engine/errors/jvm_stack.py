"""The JVM stack in the text of a PySpark error: removed, or extracted."""

from __future__ import annotations

import re

_HEADING = "JVM stacktrace:\n"
_STACK_MAX = 64 * 1024
# It ends where a traceback goes on to the next exception of a chain.
_STACK = re.compile(rf"\n*{_HEADING}.*?(?=\n\n(?:The above exception|During handling)|\Z)", re.DOTALL)
# Spark quotes the stack of a failed task in the message itself.
_FRAMES = re.compile(r"\n(?:\s+at \S+\(.*\)|\s+\.\.\. \d+ more|Driver stacktrace:)(?=\n|\Z)")


def without_jvm_stack(text: str) -> str:
    """The text of an error or traceback without JVM stack frames."""
    return _FRAMES.sub("", _STACK.sub("", text))


def jvm_stack(error: BaseException | None) -> str:
    """The JVM stack of the error or one of its causes, at most 64 KiB; empty if there is none."""
    while error is not None:
        stack = str(error).partition(_HEADING)[2]
        if stack:
            return stack[:_STACK_MAX]
        error = error.__cause__ or error.__context__
    return ""
