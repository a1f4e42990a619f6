"""What a caller asks of a stream: one update as a value, checked before any row is looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from freezeframe.errors import InvalidOption

Mode = Literal["upsert", "overwrite", "replace_where"]
Nulls = Literal["keep", "overwrite"]
NullKeys = Literal["error", "match", "drop"]
SchemaRule = Literal["evolve", "frozen"]
OnDrift = Literal["error", "string"]


@dataclass(frozen=True, slots=True)
class Update:
    """An update of one stream, with these guarantees.

    1. an upsert has a key; the key's columns are distinct;
    2. a window (``where``) belongs to ``replace_where`` and only to it;
    3. no key column is dropped.
    """

    key: tuple[str, ...]
    mode: Mode = "upsert"
    nulls: Nulls = "keep"
    null_keys: NullKeys = "error"
    drop_duplicates: bool = True
    drop_columns: tuple[str, ...] = ()
    where: str | None = None
    schema: SchemaRule = "evolve"
    on_drift: OnDrift = "error"
    sets_key: bool = False
    """An overwrite makes ``key`` the stream's, even an empty one; else that means the stored one."""
    expected_version: int | None = None
    """The stream's version that the rows were made for (-1: none yet); at another one nothing is written."""
    notes: tuple[tuple[str, str], ...] = ()
    """What is noted with the stream in the same commit, by name; earlier notes of other names stay."""

    def __post_init__(self) -> None:
        _require_choice("nulls", self.nulls, ("keep", "overwrite"))
        _require_choice("null_keys", self.null_keys, ("error", "match", "drop"))
        _require_choice("schema", self.schema, ("evolve", "frozen"))
        _require_choice("on_drift", self.on_drift, ("error", "string"))
        if self.mode == "upsert" and not self.key:
            raise InvalidOption(
                "An update needs a key.",
                cause="Without one it cannot be known which rows are new and which are changed.",
                remedy="Pass key=['Id'], or replace the content: override=True or replace_where='…'.",
            )
        if len(set(self.key)) != len(self.key):
            raise InvalidOption(
                f"The key names a column twice: {list(self.key)}.", remedy="Name each column once."
            )
        dropped = sorted(set(self.key) & set(self.drop_columns))
        if dropped:
            raise InvalidOption(
                f"The key columns {dropped} cannot be dropped.",
                cause="The next update could not find its rows again.",
                remedy="Keep them in the snapshot and drop them from the frame that you write out.",
            )


def update_from(
    *,
    key: str | Iterable[str] | None,
    override: bool = False,
    replace_where: str | None = None,
    nulls: Nulls = "keep",
    null_keys: NullKeys = "error",
    drop_column: str | Iterable[str] | None = None,
    drop_duplicates: bool = True,
    schema: SchemaRule = "evolve",
    on_drift: OnDrift = "error",
) -> Update:
    """The ``Update`` that a caller's arguments mean; names may be one text or several.

    Raises:
        InvalidOption: arguments that cannot be true together, or outside their choices.
    """
    if override and replace_where is not None:
        raise InvalidOption(
            "override and replace_where cannot be used together.",
            cause="One replaces all rows, the other a window of them.",
            remedy="Keep the one that you mean.",
        )
    if replace_where is not None and not str(replace_where).strip():
        raise InvalidOption(
            "replace_where is empty.",
            remedy="Write it in SQL, for example replace_where=\"Date >= '2026-10-01'\".",
        )
    mode: Mode = "overwrite" if override else "upsert" if replace_where is None else "replace_where"
    return Update(
        key=_names("key", key),
        mode=mode,
        nulls=nulls,
        null_keys=null_keys,
        drop_duplicates=drop_duplicates,
        drop_columns=_names("drop_column", drop_column),
        where=replace_where,
        schema=schema,
        on_drift=on_drift,
    )


def _names(option: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise InvalidOption(f"{option} must name columns as text, not {given!r}.", remedy="Pass their names.")
    return names


def _require_choice(option: str, given: str, choices: tuple[str, ...]) -> None:
    if given not in choices:
        raise InvalidOption(f"{option} cannot be {given!r}.", remedy=f"Use one of {', '.join(choices)}.")
