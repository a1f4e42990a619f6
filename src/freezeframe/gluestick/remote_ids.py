"""``merge_id_from_snapshot``: the ids that a target gave to records which it has received before."""

from __future__ import annotations

import logging
from typing import Any

import pandas as pd

from freezeframe.engine.frames.pandas_columns import is_missing
from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.gluestick.snapshot_streams import read_snapshots
from freezeframe.script.adoption.row_hashes import canonical_cell
from freezeframe.script.snapshots import Directory

_INPUT_ID, _REMOTE_ID, _EXTERNAL_ID = "InputId", "RemoteId", "externalId"
_NUMBER_TAG, _TEXT_TAG = b"n", b"s"

_logger = logging.getLogger(__name__)


def merge_id_from_snapshot(
    df: pd.DataFrame, snapshot_dir: Directory, stream: str, flow_id: str, pk: str
) -> pd.DataFrame:
    """The rows with the target's own id in the column ``pk``, None where the target gave none yet.

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
    _require(df, _EXTERNAL_ID, f"the rows of {stream!r}")
    name = f"{stream}_{flow_id}"
    id_map = read_snapshots(name, snapshot_dir, dtype_backend="numpy_nullable")
    if id_map is None or id_map.empty:
        _logger.info("There is no id map %r: the rows stay as they are.", name)
        return df
    for column in (_INPUT_ID, _REMOTE_ID):
        _require(id_map, column, f"the id map {name!r}")
    remote = {
        _id_text(given): _plain(found)
        for given, found in zip(id_map[_INPUT_ID], id_map[_REMOTE_ID], strict=True)
        if not is_missing(given)
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


def _require(frame: pd.DataFrame, column: str, what: str) -> None:
    if column not in frame.columns:
        raise MissingColumn(
            f"The column {column!r} is missing in {what}.",
            cause=f"The columns are {', '.join(map(repr, frame.columns)) or 'none at all'}.",
            remedy="Ids are matched by externalId, InputId and RemoteId.",
            column=column,
        )
