"""Types that hold each other's values (pure)."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.equality import cells_differ
from freezeframe.engine.frames.python_values import far_moments
from freezeframe.engine.frames.untyped import fit, has_untyped, settled_type
from freezeframe.log.format.schema import arrow_field, arrow_to_delta, arrow_type
from freezeframe.nested_types import every_type, inner, parts, with_inner, with_parts

# Leaves widen as numbers do (integer to wider integer, to decimal, to double where exact; float to double;
# date to a timestamp without zone); structs get the fields of both; lists and maps go by their elements.
# No value becomes text, and no text becomes another type.

_EXACT_IN_DOUBLE = 2**53
_WIDEST = 64
_DECIMAL_DIGITS_MAX = 38
_DIGITS_OF = {8: 3, 16: 5, 32: 10, _WIDEST: 19}

Range = tuple[Any, Any]
FindRange = Callable[[], Range | None]
"""Finds the smallest and the largest stored value of a column, where they are known."""
Path = tuple[str, ...]
"""Leads to a part of a nested column: names of members, ``element`` of a list, ``key`` and ``value``."""
Agree = Callable[[pa.DataType, pa.DataType, Path], pa.DataType | None]
"""Returns the common type of two leaves, or None."""


def widens(stored: pa.DataType, incoming: pa.DataType, find_range: FindRange = lambda: None) -> bool:
    """Return whether every stored value converts exactly to the incoming type, by type or known range."""
    if pa.types.is_integer(stored) and pa.types.is_integer(incoming):
        return bool(incoming.bit_width > stored.bit_width)
    if pa.types.is_integer(stored) and pa.types.is_decimal(incoming):
        return bool(incoming.precision - incoming.scale >= _digits(stored))
    if pa.types.is_integer(stored) and pa.types.is_float64(incoming):
        return bool(stored.bit_width < _WIDEST or _within(find_range, _EXACT_IN_DOUBLE))
    if pa.types.is_decimal(stored) and pa.types.is_decimal(incoming):
        wholes = incoming.precision - incoming.scale, stored.precision - stored.scale
        return bool(incoming.scale >= stored.scale and wholes[0] >= wholes[1])
    if pa.types.is_float32(stored) and pa.types.is_float64(incoming):
        return True
    return bool(pa.types.is_date(stored) and is_local_time(incoming))


def may_take(stored: pa.DataType, incoming: pa.DataType) -> bool:
    """Return whether a conversion between the types is allowed in principle; the values decide the rest."""
    if pa.types.is_integer(stored) and pa.types.is_integer(incoming):
        return True
    if is_number(stored) and is_number(incoming):
        # The double 0.1 differs from the decimal 0.1; the intended value is unknown.
        return not (pa.types.is_decimal(stored) and pa.types.is_floating(incoming))
    # A frame's dates are text where a file's were; text that is a date in ISO 8601 has one meaning.
    return bool(
        (is_local_time(stored) and pa.types.is_date(incoming))
        or (pa.types.is_date(stored) and pa.types.is_string(incoming))
    )


def shared_decimal(
    stored: pa.DataType, incoming: pa.DataType, find_range: FindRange = lambda: None
) -> pa.DataType | None:
    """Return the common decimal type of an integer or decimal column and a decimal, within 38 digits.

    Where the types alone need more, a known range of the stored values may need less; then the batch's
    values decide.
    """
    scales, wholes = [], []
    for kind in (stored, incoming):
        if pa.types.is_decimal(kind):
            scales.append(kind.scale)
            wholes.append(kind.precision - kind.scale)
        elif pa.types.is_integer(kind):
            scales.append(0)
            wholes.append(_digits(kind))
        else:
            return None
    precision, scale = max(wholes) + max(scales), max(scales)
    if precision <= _DECIMAL_DIGITS_MAX:
        return pa.decimal128(precision, scale)
    holds_stored = _within(find_range, 10 ** (_DECIMAL_DIGITS_MAX - scale) - 1)
    return pa.decimal128(_DECIMAL_DIGITS_MAX, scale) if holds_stored else None


def common_nested(
    stored: pa.DataType, incoming: pa.DataType, agree: Agree | None = None, path: Path = ()
) -> pa.DataType | None:
    """Return a common type for two nested types, or None: fields of both sides, each leaf by ``agree``.

    Without ``agree`` types alone decide, and not values.
    """
    if stored == incoming or pa.types.is_null(incoming):
        return stored
    if pa.types.is_null(stored):
        return incoming
    if pa.types.is_struct(stored) and pa.types.is_struct(incoming):
        return _common_struct(stored, incoming, agree, path)
    if pa.types.is_list(stored) and pa.types.is_list(incoming):
        element = common_nested(stored.value_type, incoming.value_type, agree, (*path, "element"))
        return None if element is None else pa.list_(element)
    if pa.types.is_map(stored) and pa.types.is_map(incoming):
        key = common_nested(stored.key_type, incoming.key_type, agree, (*path, "key"))
        item = common_nested(stored.item_type, incoming.item_type, agree, (*path, "value"))
        return None if key is None or item is None else pa.map_(key, item)
    if pa.types.is_nested(stored) or pa.types.is_nested(incoming):
        return None
    if agree is not None:
        return agree(stored, incoming, path)
    if widens(stored, incoming):
        return incoming
    return stored if widens(incoming, stored) else shared_decimal(stored, incoming)


def part_of(column: pa.ChunkedArray, path: Path) -> pa.ChunkedArray:
    """Return the values of a part of a nested column; see ``common_nested`` for its path."""
    for name in path:
        kind, place = column.type, ("key", "value").index(name) if pa.types.is_map(column.type) else 0
        place = kind.get_field_index(name) if pa.types.is_struct(kind) else place
        column = pa.chunked_array([inner(chunk)[place] for chunk in column.chunks], parts(kind)[place].type)
    return column


def has_exact_text(kind: pa.DataType) -> bool:
    """Return whether each value has one exact text, the same in Arrow and in Spark."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_string(kind)
    )


def meet_as_text(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether one type is text and the other has an exact text for each value."""
    is_text = bool(pa.types.is_string(left) or pa.types.is_string(right))
    return left != right and is_text and has_exact_text(left) and has_exact_text(right)


def cast_to(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast the values; from text also to dates and times beyond ``datetime``."""
    if pa.types.is_string(column.type) and (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        far = far_moments(column, kind)
        if far is not None:
            return far
    return fit(column, kind)


def with_maps(column: pa.ChunkedArray, stored: pa.DataType) -> pa.ChunkedArray:
    """Return the column with maps where ``stored`` has maps and the column has lists of pairs.

    So pandas has a map (a list of tuples, of which an empty one and one of texts say no more), and Polars (a
    list of structs with ``key`` and ``value``). Lists of anything else stay as they are.
    """
    if not any(map(pa.types.is_map, every_type(stored))):
        return column
    # In one piece: a chunk of empty lists alone does not say what is in them.
    return pa.chunked_array([_with_maps(column.combine_chunks(), stored)])


def _with_maps(array: pa.Array, stored: pa.DataType) -> pa.Array:
    kind = array.type
    if pa.types.is_struct(kind) and pa.types.is_struct(stored) and kind.num_fields:
        types = {part.name: part.type for part in stored}
        arrays = [
            _with_maps(part, types.get(field.name, field.type))
            for field, part in zip(kind, inner(array), strict=True)
        ]
    elif (pa.types.is_map(kind) and pa.types.is_map(stored)) or (
        pa.types.is_list(kind) and pa.types.is_list(stored)
    ):
        arrays = [_with_maps(part, to.type) for part, to in zip(inner(array), parts(stored), strict=True)]
    elif pa.types.is_list(kind) and pa.types.is_map(stored):
        found = _keys_and_values(*inner(array))
        if found is None:
            return array
        keys = _as_stored(found[0], stored.key_type)
        values = _as_stored(_with_maps(found[1], stored.item_type), stored.item_type)
        return with_inner(array, [keys, values], pa.map_(keys.type, values.type))
    else:
        return array
    return with_inner(array, arrays, with_parts(kind, [part.type for part in arrays]))


def _as_stored(array: pa.Array, stored: pa.DataType) -> pa.Array:
    """Return one side of pairs as stored, where it is: both sides had to have one type."""
    if array.null_count == len(array):
        return pa.nulls(len(array), stored)
    cast = exact_cast(pa.chunked_array([array]), stored) if may_take(stored, array.type) else None
    return array if cast is None else cast.combine_chunks()


def _keys_and_values(pairs: pa.Array) -> tuple[pa.Array, pa.Array] | None:
    """Return the two sides of pairs; None where a value is no pair."""
    kind = pairs.type
    if pa.types.is_null(kind) and not len(pairs):
        return pairs, pairs
    if pairs.null_count:
        return None
    if pa.types.is_struct(kind) and [part.name for part in kind] == ["key", "value"]:
        keys, values = pairs.flatten()
    elif pa.types.is_list(kind) and len(pairs) and pc.all(pc.equal(pc.list_value_length(pairs), 2)).as_py():
        places = pa.array(np.arange(len(pairs)) * 2)
        keys, values = (pairs.flatten().take(pc.add(places, side)) for side in (0, 1))
    else:
        return None
    return None if keys.null_count else (keys, values)


def is_number(kind: pa.DataType) -> bool:
    """Return whether its values are numbers: whole ones, floats or decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_local_time(kind: pa.DataType) -> bool:
    """Return whether it is a timestamp without a zone."""
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def _common_struct(
    stored: pa.DataType, incoming: pa.DataType, agree: Agree | None, path: Path
) -> pa.DataType | None:
    fields = {part.name: part.type for part in stored}
    folded = {name.casefold(): name for name in fields}
    for part in incoming:
        if folded.get(part.name.casefold(), part.name) != part.name:
            return None  # names that differ by case only are one name to many readers
        known = fields.get(part.name)
        kind = part.type if known is None else common_nested(known, part.type, agree, (*path, part.name))
        if kind is None:
            return None
        fields[part.name] = kind
    return pa.struct([pa.field(name, kind) for name, kind in fields.items()])


def _digits(kind: pa.DataType) -> int:
    return _DIGITS_OF[kind.bit_width]


def _within(find_range: FindRange, limit: int) -> bool:
    stored_range = find_range()
    return stored_range is not None and -limit <= stored_range[0] and stored_range[1] <= limit


# Texts that are integers as printed (``docs/decisions/0026``): "7" is the number 7 and "X9" is none, but
# "007", "+7", " 7" and "7.0" may be meant as the stored 7 or as another key.

AS_PRINTED = r"^(?:0|-?[1-9][0-9]*)$"
_READS_AS_NUMBER = r"^\s*[+-]?[0-9]+(?:\.0*)?\s*$"
_LARGEST = str(2**63)
_SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class IntegerTexts:
    """Classification of a text column by integers.

    ``has_text``: a value is not a printed integer. ``doubtful``: the first rows with texts that parse
    as an integer but differ from its printed form.
    """

    has_text: bool
    doubtful: tuple[dict[str, Any], ...]

    @property
    def needs_text(self) -> bool:
        """Whether the column must be text and no value is doubtful."""
        return self.has_text and not self.doubtful


def integer_texts(pieces: Iterable[pa.ChunkedArray]) -> IntegerTexts:
    """Classify the values of a text column, given in pieces."""
    has_text, row = False, 0
    doubtful: list[dict[str, Any]] = []
    for piece in pieces:
        is_printed = pc.match_substring_regex(piece, AS_PRINTED)
        is_number = pc.match_substring_regex(piece, _READS_AS_NUMBER)
        is_doubtful = pc.and_(is_number, pc.invert(is_printed))
        is_text = pc.or_(pc.invert(is_number), pc.and_(is_printed, _is_too_long(piece)))
        has_text = has_text or bool(pc.any(is_text, min_count=0).as_py())
        indices = pc.indices_nonzero(is_doubtful).slice(0, _SHOWN_MAX - len(doubtful)).to_pylist()
        doubtful += [{"row": row + index, "value": repr(piece[index].as_py())} for index in indices]
        row += len(piece)
    return IntegerTexts(has_text, tuple(doubtful))


def _is_too_long(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a mask of the printed integers beyond 64 bits."""
    digits = pc.utf8_ltrim(texts, "-")
    length = pc.utf8_length(digits)
    as_long = pc.and_(pc.equal(length, len(_LARGEST)), pc.greater_equal(digits, _LARGEST))
    return pc.or_(pc.greater(length, len(_LARGEST)), as_long)


# The schema of a column without a full type holds ``untyped.settled_type``, which every Delta reader
# knows. The column's own type is in its field's metadata (``docs/decisions/0041``).

OPEN_TYPE = "freezeframe.openType"

Described = Mapping[str, Any]


def open_type_mark(kind: pa.DataType) -> dict[str, str]:
    """Return the metadata of a field whose column has this type; none where the type is settled."""
    if not has_untyped(kind):
        return {}
    (described,) = arrow_to_delta(pa.schema([("column", kind)]))["fields"]
    return {OPEN_TYPE: json.dumps(described["type"])}


def stored_field(described: Described) -> pa.Field:
    """Return the Arrow field of a column, with the type that it has so far."""
    field, mark = arrow_field(described), (described.get("metadata") or {}).get(OPEN_TYPE)
    return field if mark is None else field.with_type(arrow_type(json.loads(mark)))


def open_columns(schema: Described, void: str = "void") -> dict[str, Any]:
    """Return the schema with the columns' types so far; ``void`` names the type of parts without one."""
    fields = [
        {**field, "type": _open_type(field["type"], stored_field(field).type, void)}
        for field in schema["fields"]
    ]
    return {**schema, "fields": fields}


def _open_type(described: Any, kind: pa.DataType, void: str) -> Any:
    """Return the described type, which has physical names, without what ``kind`` leaves open."""
    if pa.types.is_null(kind):
        return void
    if pa.types.is_struct(kind) and described["type"] == "struct":
        parts = {part.name: part.type for part in kind}
        fields = [
            {**field, "type": _open_type(field["type"], parts[field["name"]], void)}
            for field in described["fields"]
            if field["name"] in parts
        ]
        return {**described, "fields": fields}
    if pa.types.is_list(kind):
        return {**described, "elementType": _open_type(described["elementType"], kind.value_type, void)}
    if pa.types.is_map(kind):
        return {**described, "valueType": _open_type(described["valueType"], kind.item_type, void)}
    return described


# Values of two types are compared in the type that holds both exactly. Text and a type with exact texts are
# compared as text. Values of other pairs, such as a time and a number, always differ.

_DAY_US = 86_400_000_000
_DAYS_OF_TIMESTAMPS = (2**63 - 1) // _DAY_US
_LEAST = -(2**63)


def comparison_type(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """Return the type that holds values of both types exactly; None where there is none."""
    if meet_as_text(old, new):
        return pa.string()
    kind = common_nested(old, new)
    return None if kind is None else settled_type(kind)


def in_common(column: Any, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast the column to a ``comparison_type``; a day beyond all timestamps becomes the least one."""
    if not (pa.types.is_date(column.type) and pa.types.is_timestamp(kind)):
        return cast_to(column, kind)
    days = column.cast(pa.int32()).cast(pa.int64())
    reached = pc.less_equal(pc.abs(days), _DAYS_OF_TIMESTAMPS)
    moments = pc.multiply(pc.if_else(reached, days, 0), _DAY_US)
    return pc.if_else(reached, moments, pa.scalar(_LEAST)).cast(kind)


def exact_cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Cast the column if every value stays the same, else None."""
    try:
        cast = cast_to(column, kind)
        back = cast_to(cast, column.type)
    except (pa.ArrowException, ValueError):
        return None
    if not pa.types.is_floating(column.type) and back.equals(column):
        return cast
    return None if pc.any(cells_differ(column, back)).as_py() else cast
