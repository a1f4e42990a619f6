"""The outcome of a run: one value for the command, the queue and the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from freezeframe.errors import InvalidOption

Status = Literal["succeeded", "failed", "cancelled", "timed_out", "repeated"]
_PATHS = ("job_root", "log", "notebook")


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of a run, and the locations of its results.

    ``receipt`` is the tenant's answer (``JobReceipt.to_json``) of a run that succeeded, or had succeeded
    before (``repeated``: nothing was run). Any other status: nothing of the run is visible, and
    ``error`` is an error as ``FreezeframeError.to_json`` gives it. ``notebook`` is the executed one.
    ``exit_code`` is the script's; None where it was not run, or ended by a signal. ``made_tenant``: the
    store had no tenant of that id before; ``similar_tenants`` are ids of others that may have been meant.
    ``remarks`` is what a person should read about the input: numbers kept as text, files passed over; of
    a repeated run that its script is another one than the job's.
    """

    status: Status
    job_id: str
    job_root: Path
    seconds: float
    tenant_version: int | None
    receipt: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    log: Path
    notebook: Path | None
    exit_code: int | None
    made_tenant: bool = False
    similar_tenants: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.status not in get_args(Status):
            raise InvalidOption(f"{self.status!r} is not a status of a run.", remedy="See RunOutcome.")
        if self.is_success != (self.receipt is not None) or self.is_success == (self.error is not None):
            raise InvalidOption(
                f"A run that is {self.status} cannot have been answered so.",
                cause="A success has a receipt and no error, anything else an error and no receipt.",
                remedy="Pass the one that belongs to the status.",
            )

    @property
    def is_success(self) -> bool:
        """Whether what the script did is visible, by this run or by an earlier one of the same id."""
        return self.status in {"succeeded", "repeated"}

    def to_json(self) -> dict[str, Any]:
        """All fields by name, paths as text."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        paths = {name: None if named[name] is None else str(named[name]) for name in _PATHS}
        mappings = {name: None if named[name] is None else dict(named[name]) for name in ("receipt", "error")}
        lists = {name: list(named[name]) for name in ("similar_tenants", "remarks")}
        return {**named, **paths, **mappings, **lists}
