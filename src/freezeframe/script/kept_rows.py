"""The row of a key in the kept input of a job, read as the readers of folders read it.

Files are there for readers by their names alone: on Linux their bytes have no name, so that a process that is
killed leaves nothing of a person outside of the tenant's folder.
"""

import tempfile
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from freezeframe.errors import FreezeframeError, TooLarge
from freezeframe.identifiers import StreamName
from freezeframe.script.formats.columnar_files import ParquetFormat
from freezeframe.script.formats.csv_file import unpacked
from freezeframe.script.formats.csv_rows import CsvFormat
from freezeframe.script.formats.input_parts import InputPart
from freezeframe.script.formats.json_rows import JsonFormat
from freezeframe.script.formats.row_format import RowFormat
from freezeframe.script.inputs.stream_files import (
    CSV_EXTENSIONS,
    JSON_EXTENSIONS,
    PARQUET_EXTENSIONS,
    file_extension,
    stream_files,
    stream_of,
)
from freezeframe.script.types.known_types import FILE_NAME, NO_CSV_OPTIONS, catalog_beside
from freezeframe.script.types.typed_columns import KnownTypes
from freezeframe.storage.local import failure, temporary_file
from freezeframe.store.blobs.kept_inputs import KeptFile, KeptInputs
from freezeframe.store.maintenance.row_origins import InputRow
from freezeframe.store.table.keys import KeyNumbers, keys_as

_INPUT = "sync-output"
_FORMATS: Sequence[tuple[RowFormat, Sequence[str]]] = (
    (CsvFormat(), CSV_EXTENSIONS),
    (JsonFormat(), JSON_EXTENSIONS),
    (ParquetFormat(), PARQUET_EXTENSIONS),
)
_READ = frozenset(extension for _, extensions in _FORMATS for extension in extensions)
_PART_BYTES = 4 * 2**20  # a line is counted from the beginning of its part
_BYTES_MAX = 2**30
_FILES_MAX = 500


def find_input_row(
    kept: KeptInputs,
    folder: str,
    files: Mapping[str, KeptFile],
    stream: StreamName,
    stored: pa.Schema,
    keys: pa.Table,
) -> InputRow | None:
    """Return the last row with a key in a job's kept files of a stream, else in those of other streams.

    Those of others are looked through if the job had no file of the stream's name. ``stored`` are the
    stream's types, by which the files are read.

    Raises:
        TooLarge: the files of a stream are too large to be looked through.
        BadInput, CorruptData, SealingUnavailable: they cannot be read.
    """
    streams: dict[str, list[str]] = {}
    for name in files:
        if name.startswith(f"{_INPUT}/") and file_extension(Path(name)) in _READ:
            streams.setdefault(stream_of(Path(name)), []).append(name)
    for one in [str(stream)] if str(stream) in streams else sorted(streams):
        wanted = {name: files[name] for name in (*streams[one], FILE_NAME) if name in files}
        if sum(file.size for file in wanted.values()) > _BYTES_MAX or len(wanted) > _FILES_MAX:
            raise _too_large(one)
        found = _find(kept, folder, wanted, stored, keys)
        if found is not None:
            return found
    return None


def _find(
    kept: KeptInputs, folder: str, files: Mapping[str, KeptFile], stored: pa.Schema, keys: pa.Table
) -> InputRow | None:
    """Return the row in files of one stream, and its catalog."""
    with tempfile.TemporaryDirectory() as place, ExitStack() as held:
        root, names = Path(place), dict[Path, str]()
        try:
            for name, file in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                names[temporary_file(held, root / name, kept.chunks(folder, file))] = name
            left = _BYTES_MAX - sum(file.size for file in files.values())
            for path in [path for path in names if path.suffix.casefold() == ".gz"]:
                plain = _plain(held, path, left)
                names[plain] = names.pop(path)
                left -= plain.stat().st_size
            catalog = catalog_beside(root / _INPUT)
            for form, extensions in _FORMATS:
                for parent in sorted({path.parent for path in names if path.parent != root}):
                    for stream, found in stream_files(parent, extensions).items():
                        paths = [path for path in found if path in names]
                        known = NO_CSV_OPTIONS.known(stream, stored, catalog.columns(stream))
                        row = _last_row(form, paths, known, keys, names)
                        if row is not None:
                            return row
        except OSError as error:
            raise failure("write", place, error) from error
        except FreezeframeError as error:
            error.problem = error.problem.replace(f"{place}/", "")
            raise
    return None


def _plain(held: ExitStack, path: Path, bytes_max: int) -> Path:
    """Return a packed file as a plain one, which readers would else write for each look at it."""
    plain, content = path.with_suffix(""), _limited(unpacked(path), bytes_max, stream_of(path))
    if plain.exists():  # another file has the name: the packed one stays, and is read as that
        deque(content, maxlen=0)
        return path
    temporary_file(held, plain, content)
    path.unlink()
    return plain


def _limited(content: Iterable[bytes], bytes_max: int, stream: str) -> Iterator[bytes]:
    for chunk in content:
        bytes_max -= len(chunk)
        if bytes_max < 0:
            raise _too_large(stream)
        yield chunk


def _too_large(stream: str) -> TooLarge:
    return TooLarge(
        f"The files of {stream!r} are too large to be looked through.",
        cause=f"{_BYTES_MAX:,} bytes, unpacked too, and {_FILES_MAX} files are looked through at most.",
        remedy="Pull the job, and look there.",
    )


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


class _AllBut(Container[str]):
    """All names but some."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __contains__(self, name: object) -> bool:
        return name not in self._names


def _last_row(
    form: RowFormat, files: Sequence[Path], known: KnownTypes, keys: pa.Table, names: Mapping[Path, str]
) -> InputRow | None:
    """Return the last row of a stream's files that has the key; None: no row, or not the key's columns."""
    if not files:
        return None
    is_text = isinstance(form, CsvFormat)
    whole = known
    if is_text:  # only keys are typed in all rows: numbers of the others would take most of the time
        known = replace(known, texts=_AllBut(keys.column_names))
    parts = [part for file in files for part in form.parts(file, _PART_BYTES)]
    surveys = [form.survey(part, known) for part in parts]
    joined = form.joined(parts, surveys, known)
    schema = form.schema(joined, known)
    if not set(keys.column_names) <= set(schema.names):
        return None
    wanted = keys_as(keys, schema)
    numbers, count, rows = KeyNumbers(wanted), 0, Counter[Path]()
    last: tuple[InputPart, int, int, pa.Table] | None = None
    for part, survey in zip(parts, surveys, strict=True) if len(wanted) else ():
        begin = 0
        for table in form.tables(part, survey, joined, known):
            at, _ = numbers.found_in(table.select(wanted.column_names))
            if len(at):
                count += len(at)
                last = part, begin + int(at[-1]), rows[part.file], table.take(pa.array(at[-1:]))
            begin += len(table)
        rows[part.file] += begin
    if last is None:
        return None
    part, row, before, cells = last
    if is_text:
        typed = whole.table(cells.drop_columns(keys.column_names))
        cells = pa.table({**_columns(cells), **_columns(typed)})
    name = names[part.file].removeprefix(f"{_INPUT}/")
    return InputRow(name, before + row + 1, form.line(part, row), count, cells)
