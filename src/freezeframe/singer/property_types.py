"""The column of a property: which JSON values its schema allows, and the types that hold them exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from freezeframe.script.formats.json_columns import JsonNumber
from freezeframe.script.types.catalog import declared_type, type_alternatives
from freezeframe.script.types.inference import ColumnRule, KnownTypes, declared_rule, exact_reading

_DIGITS = 38
# Numbers beyond a double whose digits are not declared.
_LONG_NUMBER = pa.decimal128(_DIGITS, 18)
_JSON_TYPES = {bool: "boolean", str: "string", dict: "object", list: "array"}


def allowed_types(schema: Mapping[str, Any]) -> frozenset[str]:
    """The JSON types that a property's schema names, without ``null``; empty if it names none."""
    return frozenset(name for _, names in type_alternatives(schema) for name in names) - {"null"}


def json_type(value: Any) -> str:
    """The JSON type of a value that is not null; one of ``integer`` is a ``number`` as well."""
    if isinstance(value, JsonNumber):
        return "integer" if value.is_integer else "number"
    return _JSON_TYPES[type(value)]


def is_allowed(value: Any, types: frozenset[str]) -> bool:
    """Whether a value that is not null is of one of the types; a number may be an integer with a point."""
    return (
        not types or json_type(value) in types or (isinstance(value, JsonNumber) and bool(types & _NUMBERS))
    )


def column_rule(name: str, schema: Mapping[str, Any], stored: pa.Schema | None) -> ColumnRule:
    """How the cells of a column become values: of the stored type if all fit, else of the declared one."""
    declared = _declared_rule(schema)
    known = KnownTypes(stored).rule(name, declared.ways)
    return declared if pa.types.is_null(known.kind_without_values) else known


def wider_rule() -> ColumnRule:
    """How numbers are read that neither a double nor the usual decimal holds: in the scale that they need."""
    return ColumnRule(
        tuple(exact_reading(pa.decimal128(_DIGITS, scale)) for scale in range(_DIGITS + 1)), pa.null()
    )


def must_be_number(schema: Mapping[str, Any]) -> bool:
    """Whether the column of the property is refused where no type of numbers holds all of its values."""
    types = allowed_types(schema)
    return bool(types) and types <= _NUMBERS


def _declared_rule(schema: Mapping[str, Any]) -> ColumnRule:
    declared = declared_type(schema)
    if declared is None:
        return ColumnRule((), pa.null())
    rule = declared_rule(declared)
    if pa.types.is_floating(declared):
        rule = replace(rule, ways=(*rule.ways, exact_reading(_LONG_NUMBER)))
    decimals = [exact_reading(kind) for kind in _decimal_types(schema)]
    if not decimals:
        return rule
    return ColumnRule((*decimals, *rule.ways), decimals[0].kind)


def _decimal_types(schema: Mapping[str, Any]) -> Iterator[pa.DataType]:
    """The decimal that ``multipleOf`` means, or the format ``singer.decimal``; nothing without them."""
    step = schema.get("multipleOf")
    if isinstance(step, JsonNumber) and "number" in allowed_types(schema):
        scale = _scale(step)
        if 0 < scale < _DIGITS:
            yield pa.decimal128(_DIGITS, scale)
    digits, scale_text = schema.get("precision"), schema.get("scale")
    if schema.get("format") == "singer.decimal" and isinstance(scale_text, JsonNumber):
        precision = int(digits) if isinstance(digits, JsonNumber) and digits.isdigit() else _DIGITS
        if scale_text.isdigit() and int(scale_text) <= precision <= _DIGITS:
            yield pa.decimal128(precision, int(scale_text))


def _scale(step: JsonNumber) -> int:
    try:
        exponent = Decimal(step).normalize().as_tuple().exponent
    except InvalidOperation:
        return 0
    return -exponent if isinstance(exponent, int) else 0


_NUMBERS = frozenset({"integer", "number"})
