"""Arrow columns as a stream stores them."""

import functools
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.python_values import python_values
from freezeframe.engine.frames.untyped import NO_MEMBER
from freezeframe.errors import BadInput, SchemaDriftError
from freezeframe.nested_types import every_type, fold_array, inner, is_list, pairs

# Arrow, Parquet and Spark accept any bytes as text; a stream with such bytes would be unreadable.

ROWS_NAMED_MAX = 3


def with_offsets(rows: pa.Table | pa.RecordBatch) -> pa.Table:
    """Return the rows with offsets in each list and map of them, also in those without an entry.

    Java's Arrow, so Spark's, leaves out the offsets of what lies in a list that no row has an entry in.
    PyArrow 26 reads them all the same: ``nbytes`` ends the process. Polars refuses such rows.
    """
    columns = [_with_offsets(column) for column in pa.table(rows).columns]
    return pa.table(columns, schema=rows.schema)


def _with_offsets(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_nested(column.type) or not any(
        buffer is not None and not buffer.size for chunk in column.chunks for buffer in chunk.buffers()
    ):
        return column
    # A single array would be returned as it is.
    return _each_chunk(column, lambda chunk: pa.concat_arrays([chunk, chunk.slice(0, 0)]), column.type)


def require_valid(name: str, column: pa.ChunkedArray) -> None:
    """Check that the column's buffers are valid for its type: text, decimals, offsets."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise BadInput(
                f"Column {name!r} ({column.type}) is damaged.",
                cause=str(error).splitlines()[0],
                remedy="Create the rows again from their source.",
                column=name,
            ) from error
        # The check also covers bytes outside of a slice and under nulls, which are not values.
        rows = rows_without(column, _decodes, ROWS_NAMED_MAX)
        if rows:
            raise not_utf8(name, rows) from error


def may_hold_text(kind: pa.DataType) -> bool:
    """Return whether values of a stored type can hold text, at any depth."""
    return any(map(pa.types.is_string, every_type(kind)))


def not_utf8(name: str, rows: list[int]) -> BadInput:
    """Return the error for a column with text that is not UTF-8; ``rows`` are the first of them, if known."""
    where = f" (row {', '.join(map(str, rows))})" if rows else ""
    return BadInput(
        f"Column {name!r} holds text that is not UTF-8{where}.",
        cause="Readers could not read the stream.",
        remedy="Decode the text from the encoding that it has, or pass the column as binary.",
        column=name,
        rows=rows,
    )


def rows_without(
    column: pa.ChunkedArray, holds: Callable[[pa.ChunkedArray], bool], rows_max: int
) -> list[int]:
    """Return the first rows for which a claim does not hold, found by halving the column."""
    rows: list[int] = []
    pending = [(0, len(column))]
    while pending and len(rows) < rows_max:
        start, length = pending.pop()
        if holds(column.slice(start, length)):
            continue
        if length == 1:
            rows.append(start)
            continue
        half = length // 2
        pending += [(start + half, length - half), (start, half)]
    return rows


def _decodes(column: pa.ChunkedArray) -> bool:
    try:
        python_values(column)
    except UnicodeDecodeError:
        return False
    return True


# Delta stores signed integers, microsecond timestamps (UTC or without a zone), decimals of up to
# 38 digits and so on. What Arrow offers beyond that is taken only where every value stays the
# same: unsigned integers move to a wider signed type, nanoseconds that end in 000 become
# microseconds, encodings (dictionaries, views, large offsets) are undone. All else is refused
# with the column's name and the first rows, never rounded.

DECIMAL_DIGITS_MAX = 38

_UTC = pa.timestamp("us", tz="UTC")
_NAIVE = pa.timestamp("us")
_STORED_AS: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}
_VIEWS = (pa.string_view(), pa.binary_view())
# Extension types with a plain equivalent.
_PLAIN = {"arrow.json": pa.string(), "arrow.bool8": pa.bool_()}
_SPARKS_MARKS = (b"variant", b"geometry", b"geography")
_KEPT: frozenset[pa.DataType] = frozenset(
    {
        pa.null(),
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
    }
)


def stored_column(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column in a type that a stream can keep, every value as it was.

    Dictionaries are decoded, UUIDs become their text, an unsigned 64-bit column becomes
    ``int64`` where its values fit and ``decimal(20, 0)`` where they do not. NaN stays NaN.
    """
    require_valid(name, column)
    refuse_repeated_keys(name, column)
    column = _decode(name, column)
    is_long = column.type == pa.uint64() and (pc.max(column).as_py() or 0) < 2**63
    target = pa.int64() if is_long else stored_type(name, column.type)
    if column.type == target:
        return _with_offsets(column)
    try:
        return _with_offsets(column.cast(target, safe=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        rows = rows_without(column, functools.partial(_casts, target=target), ROWS_NAMED_MAX)
        raise SchemaDriftError(
            f"Column {name!r} ({column.type}) has values that {target} cannot hold exactly"
            + (f": rows {', '.join(map(str, rows))} are the first." if rows else "."),
            cause=str(error).splitlines()[0],
            remedy="Round them yourself, or pass the column as text.",
            column=name,
            type=str(column.type),
            rows=rows,
        ) from error


def refuse_repeated_keys(name: str, column: pa.ChunkedArray) -> None:
    """Refuse a map, at any depth, that has a key twice: Spark cannot read it."""
    if pa.types.is_nested(column.type) and _repeats_keys(column):
        rows = rows_without(column, lambda part: not _repeats_keys(part), ROWS_NAMED_MAX)
        raise BadInput(
            f"Column {name!r} has maps with a key twice (rows {', '.join(map(str, rows))} are the first).",
            cause="A map has one value for each key, and Spark refuses to read others.",
            remedy="Keep one value for each key, or pass the pairs as a list of structs.",
            column=name,
            rows=rows,
        )


def _repeats_keys(column: pa.ChunkedArray) -> bool:
    return any(fold_array(chunk, _repeats_key) for chunk in column.chunks)


def _repeats_key(array: pa.Array, inside: list[bool]) -> bool:
    if any(inside) or not pa.types.is_map(array.type):
        return any(inside)
    keys, _ = inner(array)
    if pa.types.is_nested(keys.type):
        keys = pa.array(list(map(repr, python_values(keys))), pa.string())
    owners = pa.table({"row": pc.list_parent_indices(pairs(array)), "key": keys})
    return len(owners.group_by(["row", "key"]).aggregate([])) < len(owners)


def stored_type(name: str, kind: pa.DataType) -> pa.DataType:
    """Return the type in which a stream keeps values of ``kind``; ``name`` is for the message."""
    if kind in _KEPT:
        return kind
    if kind in _STORED_AS:
        return _STORED_AS[kind]
    if pa.types.is_timestamp(kind):
        return _NAIVE if kind.tz is None else _UTC
    if pa.types.is_decimal(kind):
        # A negative scale (multiples of 100, say) is spelled out in digits: Delta has none.
        digits = kind.precision - min(kind.scale, 0)
        if kind.precision > DECIMAL_DIGITS_MAX and pa.types.is_decimal256(kind):
            digits = DECIMAL_DIGITS_MAX
        if digits > DECIMAL_DIGITS_MAX or kind.scale > DECIMAL_DIGITS_MAX:
            raise SchemaDriftError(
                f"Column {name!r} has the type {kind}, which needs more than {DECIMAL_DIGITS_MAX} digits.",
                cause=f"Delta's decimals end at {DECIMAL_DIGITS_MAX} digits.",
                remedy="Pass such numbers as text.",
                column=name,
                type=str(kind),
            )
        return pa.decimal128(digits, max(kind.scale, 0))
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    nested = _stored_nested(name, kind)
    if nested is not None:
        return nested
    raise no_stored_type(name, str(kind))


def no_stored_type(name: str, kind: str) -> SchemaDriftError:
    """Return the error for a column of a type that a stream cannot keep."""
    return SchemaDriftError(
        f"Column {name!r} has the type {kind}, which a stream cannot keep.",
        cause="Delta tables have no such type.",
        remedy="Turn the column into text or numbers, or leave it out.",
        column=name,
        type=kind,
    )


def _stored_nested(name: str, kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_map(kind):
        return pa.map_(stored_type(name, kind.key_type), stored_type(name, kind.item_type))
    # The fields of Spark's VARIANT or geometry have no meaning of their own.
    marks = {mark for field in kind for mark in field.metadata or ()} if pa.types.is_struct(kind) else set()
    if pa.types.is_struct(kind) and marks.isdisjoint(_SPARKS_MARKS):
        parts = [field for field in kind if field.name != NO_MEMBER]
        return pa.struct([(field.name, stored_type(f"{name}.{field.name}", field.type)) for field in parts])
    if is_list(kind):
        return pa.list_(stored_type(f"{name}[]", kind.value_type))
    if pa.types.is_dictionary(kind):
        return stored_type(name, kind.value_type)
    return None


def _decode(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind) and kind.value_type in _VIEWS:
        # PyArrow 26 cannot cast a dictionary of views.
        plain = _STORED_AS[kind.value_type]
        return _each_chunk(column, lambda chunk: chunk.dictionary.cast(plain).take(chunk.indices), plain)
    if pa.types.is_dictionary(kind):
        return _decode(name, column.cast(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return _decode(name, _each_chunk(column, pc.run_end_decode, kind.value_type))
    if kind == pa.uuid():
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        # PyArrow 26 casts a list view to a list with a broken offsets buffer.
        lists = pa.list_(kind.value_type)
        return _each_chunk(column, lambda chunk: pa.array(python_values(chunk), lists), lists)
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name in _PLAIN:
        return column.cast(_PLAIN[kind.extension_name])
    return column


def _each_chunk(
    column: pa.ChunkedArray, change: Callable[[pa.Array], pa.Array], kind: pa.DataType
) -> pa.ChunkedArray:
    return pa.chunked_array([change(chunk) for chunk in column.chunks], type=kind)


def _casts(column: pa.ChunkedArray, target: pa.DataType) -> bool:
    try:
        column.cast(target, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return False
    return True
