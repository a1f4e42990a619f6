"""gluestick's names around reading: options, remote ids, redundant rows."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from freezeframe.engine.frames.pandas_columns import is_missing
from freezeframe.engine.frames.row_hashes import canonical_cell, frame_hashes, row_hash
from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.gluestick.snapshot_streams import read_snapshots, with_whole_keys
from freezeframe.script.adoption import adopt, leave
from freezeframe.script.snapshots import Directory, get_snapshot, update_snapshot
from freezeframe.script.tenants import open_tenant
from freezeframe.store.model.update_options import update_from
from freezeframe.store.snapshot_files import ADOPTED_NOTE

HASH_COLUMN = "hash"
UPDATED_COLUMN = "_updated"


def get_row_hash(row: Mapping[str, Any] | pd.Series[Any], columns: Sequence[str]) -> str:
    """Return the hash of a row's values in ``columns``: 32 hexadecimal digits, whatever the columns' order.

    Rows of different values have different hashes; 7, 7.0 and ``Decimal("7")`` are one value, and
    a missing value counts as if its column were not there.
    """
    return row_hash({str(name): row[name] for name in columns})


def drop_redundant(
    df: pd.DataFrame,
    name: str,
    output_dir: Directory,
    pk: str | list[str] = [],  # noqa: B006 - gluestick's signature; it is never changed
    updated_flag: bool = False,  # noqa: FBT001, FBT002
    use_csv: bool = False,  # noqa: FBT001, FBT002
) -> pd.DataFrame:
    """Return the rows that are new, or different from the last row with their key; the others are dropped.

    The hashes of the rows given are kept in the stream ``{name}.hash``, in one commit, so that the
    next run compares with them. Rows that do not come any more are no business of this function.

    Args:
        df: the rows; it is not changed.
        name: what the state is kept under.
        output_dir: the tenant's directory.
        pk: key column or columns: of rows that share a key the last one counts. Without a key a
            row is redundant if an equal one ever came before.
        updated_flag: true adds ``_updated``: whether the row's key was known before.
        use_csv: which file is left beside the state, as of ``snapshot_records``.

    Returns:
        The rows in their order, with their index and types.

    Raises:
        MissingColumn: a key column is not in the rows.
        InvalidOption: a key column is called ``hash``.
        ConflictError: others kept changing the state.
    """
    key = [pk] if isinstance(pk, str) else list(pk)
    _check_key(df, key)
    rows = df.drop_duplicates(subset=key, keep="last") if key else df
    state = f"{name}.{HASH_COLUMN}"
    hashes = frame_hashes(rows)
    identities = frame_hashes(with_whole_keys(rows[key], key)) if key else hashes
    kept = with_whole_keys(rows[key], key).assign(**{HASH_COLUMN: hashes})
    known, is_adopted = _known_hashes(output_dir, state, key, kept)
    is_new = [known.get(who) != what for who, what in zip(identities, hashes, strict=True)]
    if is_adopted:
        is_new = _unlike_gluestick(rows, is_new, identities if key else None, known)
    if len(kept):
        # With the hashes of unchanged rows: those that gluestick made are ours from now on.
        update_snapshot(output_dir, state, key or HASH_COLUMN, kept, nulls="overwrite", null_keys="match")
        leave(output_dir, open_tenant(output_dir).stream(state), as_csv=use_csv)
    fresh = rows[np.array(is_new, bool)].copy()
    if updated_flag:
        was_known = [who in known for who, new in zip(identities, is_new, strict=True) if new]
        fresh[UPDATED_COLUMN] = pd.Series(was_known, index=fresh.index, dtype=bool)
    return fresh


def _check_key(df: pd.DataFrame, key: list[str]) -> None:
    problem = "The key column {} is not among the rows' columns."
    MissingColumn.refuse(key, list(df.columns), problem, "Name one of them as pk.")
    if HASH_COLUMN in key:
        raise InvalidOption(
            f"A key column cannot be called {HASH_COLUMN!r}.",
            cause="The state keeps the hash of each row under that name.",
            remedy="Rename the column.",
        )


def _known_hashes(
    directory: Directory, state: str, key: list[str], kept: pd.DataFrame
) -> tuple[dict[str, str], bool]:
    """Return the stored hash by the key's hash (by itself without a key), and whether gluestick made some."""
    stream = open_tenant(directory).stream(state)
    if len(kept):
        # First, so that the key's types in a file of gluestick's are read as those of the rows.
        adopt(directory, stream, update_from(key=key or HASH_COLUMN, null_keys="match"), Rows(kept))
    stored = get_snapshot(directory, state, dtype_backend="numpy_nullable")
    if stored is None:
        return {}, False
    hashes = stored[HASH_COLUMN].tolist()
    identities = frame_hashes(stored[key]) if key else hashes
    return dict(zip(identities, hashes, strict=True)), ADOPTED_NOTE in stream.notes


def _unlike_gluestick(
    rows: pd.DataFrame, is_new: list[bool], identities: list[str] | None, known: dict[str, str]
) -> list[bool]:
    """Return the same answers, but rows that gluestick's own hash knows are not new.

    gluestick's state was adopted: without this, the first run after that would send every row again.
    """
    columns = sorted(rows.columns)
    candidates = rows[np.array(is_new, bool)]
    texts = [_gluestick_hash(row, columns) for _, row in candidates.iterrows()]
    positions = [position for position, new in enumerate(is_new) if new]
    answers = list(is_new)
    for position, text in zip(positions, texts, strict=True):
        stored = known.get(identities[position]) if identities else known.get(text)
        answers[position] = stored != text
    return answers


def _gluestick_hash(row: pd.Series[Any], columns: Sequence[str]) -> str:
    """Return the hash that gluestick's state files hold: MD5 of the joined texts of what is not missing."""
    text = "".join(str(row[name]) for name in columns if not is_missing(row[name]))
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


_INPUT_ID, _REMOTE_ID, _EXTERNAL_ID = "InputId", "RemoteId", "externalId"
_NUMBER_TAG, _TEXT_TAG = b"n", b"s"

_logger = logging.getLogger(__name__)


def merge_id_from_snapshot(
    df: pd.DataFrame, snapshot_dir: Directory, stream: str, flow_id: str, pk: str
) -> pd.DataFrame:
    """Return the rows with the target's own id in the column ``pk``, None where the target gave none yet.

    The id map is the snapshot ``{stream}_{flow_id}`` with the columns InputId and RemoteId, as a
    target writes it; of several entries for one InputId the last counts. Ids are compared as
    text, so 7 in the map and "7" in the rows are one id and "007" is another. A column ``pk``
    that is there already keeps its value where the map has none. Without an id map, the rows
    come back as they are.

    Raises:
        InvalidOption: ``pk`` is empty.
        MissingColumn: the rows have no ``externalId``, or the map lacks one of its two columns.
    """
    if not pk:
        raise InvalidOption(
            f"No PK found for {stream!r}. Cannot merge.",
            remedy="Pass the name of the column that takes the target's id.",
        )
    _require(df, [_EXTERNAL_ID], f"the rows of {stream!r}")
    name = f"{stream}_{flow_id}"
    id_map = read_snapshots(name, snapshot_dir, dtype_backend="numpy_nullable")
    if id_map is None or id_map.empty:
        _logger.info("There is no id map %r: the rows stay as they are.", name)
        return df
    _require(id_map, [_INPUT_ID, _REMOTE_ID], f"the id map {name!r}")
    remote = {
        _id_text(input_id): _plain(found)
        for input_id, found in zip(id_map[_INPUT_ID], id_map[_REMOTE_ID], strict=True)
        if not is_missing(input_id)
    }
    ids = [remote.get(_id_text(value)) for value in df[_EXTERNAL_ID].tolist()]
    if pk in df.columns:
        before = [_plain(value) for value in df[pk].tolist()]
        ids = [old if new is None else new for new, old in zip(ids, before, strict=True)]
    merged = df.copy()
    merged[pk] = pd.Series(ids, index=df.index, dtype=object)
    return merged


def _id_text(value: Any) -> bytes | None:
    cell = canonical_cell(value)
    return None if cell is None else cell.removeprefix(_NUMBER_TAG if cell[:1] == _NUMBER_TAG else _TEXT_TAG)


def _plain(value: Any) -> Any:
    return None if is_missing(value) else value


def _require(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    remedy = "Ids are matched by externalId, InputId and RemoteId."
    MissingColumn.refuse(columns, list(frame.columns), f"The column {{}} is missing in {what}.", remedy)
