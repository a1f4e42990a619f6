"""Files read as a whole, and part by part as Spark's workers do: equal types, rows and errors."""

import pyarrow as pa
import pytest
from tests.script.test_spark_reading import differing_parquet, every_json_value, every_text

from freezeframe.errors import FreezeframeError
from freezeframe.script.formats.columnar_files import (
    parquet_parts,
    parquet_schema,
    parquet_tables,
    read_parquet_files,
)
from freezeframe.script.inputs.spark_reading import CSV, JSON_LINES

FORMS = {"csv": (CSV, every_text), "json": (JSON_LINES, every_json_value)}
FAULTS = {
    "csv": ['"', '"x"y', "," * 999, "1,\xff"],
    "json": ["{", "[1]", '{"row": 1e400}', '{"row": 1, "row": 2}', '{"own0": "\\ud800"}', '{"row": "x"}'],
}


def by_parts(text, files, known, part_bytes):
    """The rows as ``text_frames`` has Spark's workers read them, in this process."""
    parts = [part for file in files for part in text.parts(file, part_bytes)]
    surveys = [text.survey(part, known) for part in parts]
    joined = text.joined("A", parts, surveys, known)
    tables = [
        table
        for part, survey in zip(parts, surveys, strict=True)
        for table in text.tables(part, survey, known, joined)
    ]
    return pa.concat_tables([text.schema(known, joined).empty_table(), *tables])


def answer(read, *arguments):
    """Columns with their types and the rows, or the error; of several faults of a file any may be named."""
    try:
        table = read(*arguments)
    except FreezeframeError as error:
        return error.error_code, error.details.get("file")
    return list(zip(table.column_names, table.schema.types, strict=True)), repr(table.to_pylist())


@pytest.mark.parametrize("part_bytes", [20, 300, 10**6])
@pytest.mark.parametrize("form", FORMS)
def test_parts_are_read_as_the_whole(tmp_path, form, part_bytes):
    """Whatever the kinds of values, what is known of the columns, and wherever the parts end."""
    text, every = FORMS[form]
    files, known = every(tmp_path)
    whole = answer(text.whole, "A", files, known)

    assert not isinstance(whole[0], str), whole
    assert whole == answer(by_parts, text, files, known, part_bytes)


@pytest.mark.parametrize(("form", "fault"), [(form, fault) for form in FORMS for fault in FAULTS[form]])
def test_a_fault_is_told_in_parts_as_in_the_whole(tmp_path, form, fault):
    """A line that is none, at the end of the first file."""
    text, every = FORMS[form]
    files, known = every(tmp_path)
    files[0].write_bytes(files[0].read_bytes() + f"{fault}\n".encode("latin-1"))
    whole = answer(text.whole, "A", files, known)

    assert str(files[0]) == whole[1]
    assert whole == answer(by_parts, text, files, known, 300)


def test_row_groups_of_parquet_are_read_as_the_whole(tmp_path):
    """Types are joined over all files before the first row is given."""
    files = differing_parquet(tmp_path)
    schema = parquet_schema(files)
    parts = [part for file in files for part in parquet_parts(file, 1)]
    tables = [table for part in parts for table in parquet_tables(part, schema)]

    assert len(parts) == 3
    assert answer(read_parquet_files, files) == answer(pa.concat_tables, [schema.empty_table(), *tables])
