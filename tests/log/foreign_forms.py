"""Forms of tables that are read and that only other writers make: mapped columns, vectors inside the log."""

import copy
import uuid

from freezeframe.log.format.actions import DeletionVector
from freezeframe.log.format.schema import ID_KEY, PHYSICAL_NAME_KEY, fields_by_path
from freezeframe.log.scan.data_files import bitmap_bytes, z85_encode

INLINE_BYTES_MAX = 64


def with_mapping(schema):
    """The schema with an id and a physical name in every field, and the highest id."""
    mapped, number = copy.deepcopy(dict(schema)), 0
    for number, (_, field) in enumerate(fields_by_path(mapped), 1):
        numbers = {ID_KEY: number, PHYSICAL_NAME_KEY: f"col-{uuid.uuid4()}"}
        field["metadata"] = {**(field.get("metadata") or {}), **numbers}
    return mapped, number


def inline_vector(rows):
    """The rows as a vector inside the log, or None where they take more room than is good there."""
    bitmap = bitmap_bytes(rows)
    if len(bitmap) > INLINE_BYTES_MAX:
        return None
    padded = bitmap + bytes(-len(bitmap) % 4)
    return DeletionVector("i", z85_encode(padded), len(bitmap), len(rows))
