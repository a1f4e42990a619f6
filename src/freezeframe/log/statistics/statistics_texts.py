"""The statistics of many files, parsed from their JSON texts at once by Arrow's reader."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj


def read_texts(texts: pa.StringArray, schema: pa.Schema, **options: Any) -> pa.Table:
    """The objects as rows with the columns of ``schema``; a null or empty text is an empty object.

    ``options`` are those of ``pyarrow.json.read_json``.

    Raises:
        pyarrow.ArrowException: a text of another shape than most, such as a quoted NaN or a line break.
    """
    if pc.any(pc.match_substring(texts, "\n")).as_py():
        raise pa.ArrowInvalid("a line break")
    lines = pc.if_else(pc.equal(pc.fill_null(pc.binary_length(texts), 0), 0), "{}", texts)
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    table = pj.read_json(
        pa.BufferReader(pc.binary_join(whole, "\n").buffers()[2]),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        **options,
    )
    if table.num_rows != len(texts):
        raise pa.ArrowInvalid("more or fewer values than texts")
    return table
