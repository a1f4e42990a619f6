"""Exit codes by class of error."""

from __future__ import annotations

from freezeframe.errors import ConflictError, FixTheRequest, FreezeframeError, IdempotencyConflict, NotFound

OK = 0
FAILED = 1
USAGE = 2
CONFLICT = 3
NOT_FOUND = 4
INTERRUPTED = 130

# The first class that fits counts, so the narrower ones stand first.
_TABLE: tuple[tuple[type[FreezeframeError], int], ...] = (
    (NotFound, NOT_FOUND),
    (ConflictError, CONFLICT),
    (IdempotencyConflict, CONFLICT),
    (FixTheRequest, USAGE),
    (FreezeframeError, FAILED),
)


def exit_code(error: FreezeframeError) -> int:
    """0 ok, 1 failure or damage, 2 the call must change, 3 a conflict, 4 not found."""
    return next(code for kind, code in _TABLE if isinstance(error, kind))
