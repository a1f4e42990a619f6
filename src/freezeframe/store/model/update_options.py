"""Options of an update, and the author and the request of a change."""

from __future__ import annotations

import difflib
import os
import pwd
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypedDict, Unpack, get_args, get_type_hints

from freezeframe.errors import FreezeframeError, InvalidOption


@dataclass(frozen=True, slots=True)
class Author:
    """Author and message of a change; an empty ``who`` stands for the operating system's user."""

    who: str = ""
    message: str = ""

    def for_action(self, what: str) -> Author:
        """Return the author of a change that the history names ``what``, with the message behind it."""
        return Author(self.who, f"{what}: {self.message}" if self.message else what)


SYSTEM = Author()


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The service request, or the script, that causes a change.

    ``request_id`` is stored in the entries of the log, so that they can be matched with other traces of the
    request. With ``job_id`` a change without a job of its own becomes that job, so a repeated request
    changes nothing (see ``Tenant.job``). ``script_sha256`` is the hash of the script that the job runs.
    """

    request_id: str = ""
    job_id: str | None = None
    script_sha256: str = ""


NO_REQUEST = RequestContext()


@cache
def system_user() -> str:
    """Return the name of the process's user, or its number where the system knows no name."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container's user that is in no list
        return f"uid {number}"


Mode = Literal["upsert", "full", "overwrite", "replace_where"]
ModeOption = Literal["upsert", "full"]
Nulls = Literal["keep", "overwrite"]
NullKeys = Literal["error", "match", "drop"]
Deletes = Literal["remove", "flag"]
History = Literal["scd2", "none"]
SchemaRule = Literal["evolve", "frozen"]
OnDrift = Literal["error", "string"]
Names = str | Iterable[str]

DELETE_RATIO_MAX = 0.5


class FurtherOptions(TypedDict, total=False):
    """The keyword options of every update. None means not set.

    Meaning: ``docs/reference/semantics.md``, "Options".
    """

    mode: ModeOption
    """``"full"``: the rows are the full extract, so stored keys that they lack are deletions."""
    deletes: Deletes | None
    """What ``mode="full"`` does with those: ``"remove"``, or ``"flag"`` them in the column ``_deleted``.
    By default a stream continues as it began, and a new one begins with ``"remove"``."""
    max_delete_ratio: float | None
    """The largest share of the stored rows that ``mode="full"`` may delete, 0.5 by default; 1.0 allows
    all, also by an empty batch."""
    history: History | None
    """``"scd2"``: changed and deleted rows stay, with ``_valid_from`` and ``_valid_to``, from now on.
    ``"none"`` ends that, together with ``override``."""
    replace_where: str | None
    """An SQL predicate: the stored rows for which it is true are replaced, all others stay."""
    nulls: Nulls
    """``"keep"`` (the default): a null keeps the stored cell. ``"overwrite"``: the whole row is replaced."""
    null_keys: NullKeys
    """A null in a key is an ``"error"`` (the default), may ``"match"`` a null, or ``"drop"`` its row."""
    order_by: Names | None
    """Columns that order the rows of a key; the last row counts."""
    schema: SchemaRule
    """``"evolve"`` (the default), or ``"frozen"``: new columns and wider types are refused."""
    on_drift: OnDrift
    """Types that do not fit are an ``"error"`` (the default), or kept as text: ``"string"``."""


class UpdateOptions(FurtherOptions, total=False):
    """All options of an update, with the three that ``update_snapshot`` also accepts by position."""

    override: bool
    """The rows replace the whole content, columns, types and key included."""
    drop_column: Names | None
    """Columns that leave rows and stream; unknown ones are ignored."""
    drop_duplicates: bool
    """True (the default): of rows that share a key the last counts; false makes them an error."""


OPTION_HELP = {
    "mode": "upsert (default), or full: stored rows that the file lacks are deleted.",
    "override": "Replace all rows, columns and types; needs no key.",
    "replace_where": 'SQL: the stored rows for which it is true are replaced; needs no key: "Month = 10".',
    "deletes": "Of a full extract: remove the rows that it lacks, or flag them in _deleted.",
    "max_delete_ratio": "Of a full extract: the share of the stored rows that it may delete (default: 0.5).",
    "nulls": "keep (default) stored cells where a value is missing, or overwrite.",
    "null_keys": "Rows without a key: error (default), match, or drop.",
    "order_by": "A column by which rows of one key arrive; the last counts.",
    "drop_duplicates": "Of rows that share a key the last counts (default), or they are an error.",
    "drop_column": "A column to leave out and remove.",
    "schema": "evolve (default), or frozen: refuse new columns and types.",
    "on_drift": "Types that do not fit: error (default), or string: kept as text.",
    "history": "scd2 keeps changed and deleted rows; none ends that.",
}
"""What the command and the service say of each option."""


def option_kinds() -> dict[str, Any]:
    """Return the type of each option's value where it comes as text, in the order of ``OPTION_HELP``."""
    kinds = get_type_hints(UpdateOptions)
    return {name: list[str] if kinds[name] == Names | None else kinds[name] for name in OPTION_HELP}


@dataclass(frozen=True, slots=True)
class Update:
    """An update of one stream, with these guarantees.

    1. an upsert, and a full extract, have a key; the key's columns are distinct;
    2. a window (``where``) belongs to ``replace_where`` and only to it;
    3. an option for deletions belongs to ``full`` and only to it;
    4. no key column is dropped.
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
    """An overwrite makes ``key`` the stream's key, even if empty; else an empty key is the stored key."""
    expected_version: int | None = None
    """The stream's version that the rows are for (-1: no stream); another version is a conflict."""
    notes: tuple[tuple[str, str], ...] = ()
    """Notes that the same commit stores with the stream, by name; earlier notes of other names stay."""
    deletes: Deletes | None = None
    """None: as before; a stream without earlier deletions removes rows."""
    max_delete_ratio: float = DELETE_RATIO_MAX
    history: History | None = None
    """None: as before."""
    order_by: tuple[str, ...] = ()
    begins_flags: bool = False
    """An overwrite begins a stream that flags rows which later extracts lack."""

    @property
    def kept_null_keys(self) -> Literal["error", "match"]:
        """The engine's treatment of nulls in keys: rows to drop are removed before."""
        return "match" if self.null_keys == "match" else "error"

    def __post_init__(self) -> None:
        for option, choices in _CHOICES.items():
            _require_choice(option, getattr(self, option), choices)
        if self.mode in ("upsert", "full") and not self.key:
            raise InvalidOption(
                "An update needs a key.",
                cause="Without a key, new rows cannot be distinguished from changed ones.",
                remedy="Name the columns of the key: key=['Id']. Or replace the whole content by "
                "override=True, or a part of it by replace_where=\"Date >= '2026-10-01'\".",
            )
        _require_distinct("key", self.key)
        _require_distinct("order_by", self.order_by)
        if self.order_by and not self.drop_duplicates:
            raise exclusive_options(
                ("order_by", "drop_duplicates=False"),
                "order_by selects a row of each key; drop_duplicates=False forbids several.",
            )
        dropped = sorted(set(self.key) & set(self.drop_columns))
        if dropped:
            raise InvalidOption(
                f"The key columns {dropped} cannot be dropped.",
                cause="The next update could not find its rows again.",
                remedy="Keep them in the snapshot and drop them from the frame that you write out.",
            )
        self._require_deletes_fit()
        if self.history == "none" and self.mode != "overwrite":
            raise InvalidOption(
                "history='none' goes with override=True only.",
                cause="It would delete the history.",
                remedy="Leave history='none' out, or add override=True, which replaces both.",
            )

    def _require_deletes_fit(self) -> None:
        if self.deletes is not None and self.mode != "full":
            raise InvalidOption(
                f"deletes={self.deletes!r} goes with mode='full' only.",
                cause="Rows that another update lacks are not deleted.",
                remedy="Pass mode='full' if the rows are the full extract, or leave the option out.",
            )
        if self.deletes == "flag" and self.history == "scd2":
            raise exclusive_options(
                ("deletes='flag'", "history='scd2'"),
                "A history already keeps deleted rows, with the time of their deletion.",
            )
        ratio: object = self.max_delete_ratio
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 <= ratio <= 1:
            raise InvalidOption(
                f"max_delete_ratio cannot be {ratio!r}.",
                remedy="Pass a share from 0 to 1: 0.5 allows half of the rows to be deleted, 1.0 all.",
            )


_CHOICES = {
    "mode": (*get_args(Mode),),
    "nulls": (*get_args(Nulls),),
    "null_keys": (*get_args(NullKeys),),
    "schema": (*get_args(SchemaRule),),
    "on_drift": (*get_args(OnDrift),),
    "deletes": (None, *get_args(Deletes)),
    "history": (None, *get_args(History)),
}


KeyedUpdate = Callable[[tuple[str, ...] | None], Update]
"""A function from the stored key (None: there is no stream yet) to the update."""


def update_from(key: Names | None = None, **options: Unpack[UpdateOptions]) -> Update:
    """Parse a caller's arguments as an ``Update``; names may be a text or several."""
    _require_known(options)
    ratio = options.get("max_delete_ratio")
    if ratio is not None and options.get("mode") != "full":
        raise InvalidOption(
            "max_delete_ratio goes with mode='full' only.",
            cause="Other updates do not delete missing rows.",
            remedy="Pass mode='full' if the rows are the full extract, or leave max_delete_ratio out.",
        )
    return Update(
        key=_names("key", key),
        mode=_mode(options),
        nulls=options.get("nulls", "keep"),
        null_keys=options.get("null_keys", "error"),
        drop_duplicates=options.get("drop_duplicates", True),
        drop_columns=_names("drop_column", options.get("drop_column")),
        where=options.get("replace_where"),
        schema=options.get("schema", "evolve"),
        on_drift=options.get("on_drift", "error"),
        deletes=options.get("deletes"),
        max_delete_ratio=DELETE_RATIO_MAX if ratio is None else ratio,
        history=options.get("history"),
        order_by=_names("order_by", options.get("order_by")),
    )


def parse_update(key: Names | None, options: UpdateOptions) -> Update | KeyedUpdate:
    """Parse a call's options; an update by key without a key uses the stream's own."""
    if key is not None or replaces_rows(options):
        return update_from(key, **options)
    return lambda stored: update_from(stored, **options)


def require_possible(key: Names | None, options: UpdateOptions) -> None:
    """Refuse options that contradict each other, before any row is read."""
    update = parse_update(key, options)
    if callable(update):
        update(("its key",))


def replaces_rows(options: UpdateOptions) -> bool:
    """Return whether the options replace the content or a window, which needs no key."""
    return bool(options.get("override")) or options.get("replace_where") is not None


def exclusive_options(names: Iterable[str], cause: str) -> InvalidOption:
    """Return the error for options that exclude each other."""
    return InvalidOption(
        f"{' and '.join(names)} cannot be used together.",
        cause=cause,
        remedy="Give one of them.",
    )


def _mode(options: UpdateOptions) -> Mode:
    mode = options.get("mode", "upsert")
    _require_choice("mode", mode, get_args(ModeOption))
    window = options.get("replace_where")
    replacing = {
        "override=True": bool(options.get("override")),
        "replace_where": window is not None,
        "mode='full'": mode == "full",
    }
    requested = [name for name, is_set in replacing.items() if is_set]
    if len(requested) > 1:
        raise exclusive_options(
            requested,
            "override=True replaces all rows, replace_where some; mode='full' updates by key.",
        )
    if window is not None and not str(window).strip():
        raise InvalidOption(
            "replace_where is empty.",
            remedy="Write it in SQL, for example replace_where=\"Date >= '2026-10-01'\".",
        )
    return "overwrite" if options.get("override") else "replace_where" if window is not None else mode


def _require_known(options: UpdateOptions) -> None:
    known = sorted(UpdateOptions.__annotations__)
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise InvalidOption(
                f"There is no option {name!r}.",
                cause=f"The options of an update are {', '.join(known)}.",
                remedy=f"Did you mean {close[0]!r}?" if close else "Leave it out.",
                option=name,
            )


def _names(option: str, value: Names | None) -> tuple[str, ...]:
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise InvalidOption(f"{option} must name columns as text, not {value!r}.", remedy="Pass their names.")
    return names


def _require_distinct(option: str, names: tuple[str, ...]) -> None:
    if len(set(names)) != len(names):
        raise InvalidOption(
            f"{'The key' if option == 'key' else option} names a column twice: {list(names)}.",
            remedy="Name each column once.",
        )


def _require_choice(option: str, value: str | None, choices: tuple[str | None, ...]) -> None:
    if value not in choices:
        named = ", ".join(choice for choice in choices if choice is not None)
        raise InvalidOption(f"{option} cannot be {value!r}.", remedy=f"Use one of {named}.")


# Messages name an option as Python does: ``on_drift='string'``, ``override=True``, ``order_by``. The command
# line and the service translate it: ``--on-drift string``, ``on_drift=string``.

_NAMES = ("key", "schema_from", "types", "parse_dates", "escape", *UpdateOptions.__annotations__)
_VALUE = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|True|False|\d+(?:\.\d+)?"""
# A quoted name is a column's; a single word without a value may be plain English.
_OPTION = re.compile(
    rf"(?<![\w'\"])(?:(?P<name>{'|'.join(_NAMES)})=(?P<value>{_VALUE})?"
    rf"|(?P<bare>{'|'.join(name for name in _NAMES if '_' in name)}))(?![\w'\"])"
)

_TYPES = re.compile(r"""types=\{['"]?(.+?)['"]?: ['"](\w+)['"]\}""")

Say = Callable[[str, str], str]
"""The words for an option and a value of it as Python writes it, "" for none."""


def as_flag(name: str, value: str) -> str:
    """Return an option on the command line."""
    flag = f"--{name.replace('_', '-')}"
    if value in ("", "True"):
        return flag
    return f"--no-{flag[2:]}" if value == "False" else f"{flag} {_plain(value)}"


def as_parameter(name: str, value: str) -> str:
    """Return an option in a request."""
    return f"{name}={_plain(value)}" if value else name


def say_types(text: str) -> str:
    """Return a sentence whose ``types={"Phone": "string"}`` is said as a flag."""
    return _TYPES.sub(r"--types \1=\2", text)


def say_options(error: FreezeframeError, say: Say) -> FreezeframeError:
    """Return the same error, whose sentences name options by ``say``."""
    for part in ("problem", "cause", "remedy"):
        text = _TYPES.sub(lambda found: say("types", f"{found[1]}={found[2]}"), getattr(error, part))
        text = _OPTION.sub(lambda found: say(found["name"] or found["bare"], found["value"] or ""), text)
        setattr(error, part, text)
    return error


def _plain(value: str) -> str:
    """Return a value without the quotes and brackets that a shell or an address does not need."""
    inner = value.strip("[]'\"")
    if value in ("True", "False"):
        return value.lower()
    return inner if re.fullmatch(r"[\w.…-]+", inner) else value
