"""``to_export`` and ``to_singer``: gluestick's files, of any frame, whatever the number of rows.

Few rows of a Spark frame come by one request. More are written as Parquet by Spark, once; this process then
reads them in pieces and joins what is written for each into one file. Names, options and variables mean what
they mean to gluestick, which writes Singer messages (``export_values`` prepares the rows).
"""

import importlib
import itertools
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.frames.rows import Rows, library_of
from freezeframe.engine.frames.untyped import parquet_schema
from freezeframe.engine.protocol import WriteTask
from freezeframe.errors import InvalidOption, SetupError
from freezeframe.gluestick.export_values import (
    SchemaSample,
    csv_frame,
    json_lines_of,
    parquet_options,
    singer_frame,
    singer_frame_of,
)
from freezeframe.log.format.schema import delta_to_arrow
from freezeframe.log.scan.file_statistics import bounded_columns
from freezeframe.script.tenants import shared_engine
from freezeframe.storage.local import failure
from freezeframe.storage.location import path_text
from freezeframe.store.table.reader import in_schema
from freezeframe.store.table.written_rows import csv_text, json_lines

_PACKAGE = "gluestick"
_DROP_IN = "freezeframe.gluestick"


def installed_name(name: str) -> Any:
    """Return the attribute of that name in the installed gluestick, which is loaded now at the latest.

    Raises:
        SetupError: gluestick is not installed.
        AttributeError: it has no such name either.
    """
    if name.startswith("__"):
        # Names that Python's import system asks of the module itself.
        raise AttributeError(f"module {_DROP_IN!r} has no attribute {name!r}")
    try:
        installed = importlib.import_module(_PACKAGE)
    except ModuleNotFoundError as error:
        if error.name != _PACKAGE:
            raise
        raise SetupError(
            f"{_DROP_IN}.{name} needs the package gluestick, which is not installed.",
            cause="freezeframe has only the functions for snapshots; gluestick has the others.",
            remedy="Install it beside freezeframe: pip install gluestick.",
            package=_PACKAGE,
            name=name,
        ) from error
    try:
        return getattr(installed, name)
    except AttributeError as error:
        raise AttributeError(f"neither {_DROP_IN!r} nor {_PACKAGE!r} has an attribute {name!r}") from error


_PIECE_ROWS = 20_000
_COPY_BYTES = 2**20
_SINGER = "singer"

_POSITIONS = (
    "keys",
    "unified_model",
    "export_format",
    "output_file_prefix",
    "schema",
    "stringify_objects",
    "reserved_variables",
)
_NO_SINGER_OPTIONS = (
    "export_format",
    "output_file_prefix",
    "stringify_objects",
    "reserved_variables",
    "keys",
)

Tables = Iterator[pa.Table]
Write = Callable[[pd.DataFrame, str], None]
"""Writes the Singer messages of a piece's rows as gluestick does, into a folder."""


def to_export(data: Any, name: str, output_dir: str | os.PathLike[str], *args: Any, **options: Any) -> None:
    """Gluestick's ``to_export``, which takes Spark frames and Arrow tables as well, and keeps every value.

    It writes one file, which is there whole or not at all; Singer messages are added to those of other
    streams. Of a Spark frame no more than a piece of the rows is in memory. In JSON numbers have every digit;
    decimals, dates, times and what JSON has no number for are text, binary is base64, as in the product's
    other exports. In CSV a list or an object is JSON, and binary base64. A Singer stream has the schema
    of all rows.

    Raises:
        InvalidOption: a format that gluestick does not have, or an option that needs all rows at once.
        SetupError: the format is Singer's or an option is gluestick's own, and it is not installed.
        BadInput, EngineUnavailable, StorageUnavailable: the rows cannot be written.
    """
    output = Path(path_text(output_dir))
    values = {**dict(zip(_POSITIONS, args, strict=False)), **options}
    kind = values.setdefault("export_format", os.environ.get("DEFAULT_EXPORT_FORMAT", _SINGER))
    if isinstance(data, pd.DataFrame):
        if _plugin(name).is_file():
            given = (values.get("unified_model"), values.get("keys", []))
            data, model, keys = installed_name("execute_custom_plugins")(name, data, *given, str(output_dir))
            values |= {"unified_model": model, "keys": keys}
        kind = kind if kind in (_SINGER, *_WRITERS) else "csv"  # as gluestick does
    elif not _is_table(data) or (_is_polars(data) and kind not in _POLARS_LOSES):
        installed_name("to_export")(_without_binary(data, kind), name, output_dir, *args, **options)
        return
    else:
        _require_possible(name, kind, values)
    full_name = os.environ.get(f"HG_UNIFIED_OUTPUT_{name.upper()}") or name
    if prefix := values.get("output_file_prefix", os.environ.get("OUTPUT_FILE_PREFIX")):
        reserved = values.get("reserved_variables", {})
        variables = installed_name("build_string_format_variables")(default_kwargs=reserved)
        full_name = f"{installed_name('format_str_safely')(prefix, **variables)}{full_name}"
    if kind == _SINGER:
        write = installed_name("to_singer")
        rest = {option: value for option, value in values.items() if option not in _NO_SINGER_OPTIONS}
        rest["keys"] = values.get("keys") or installed_name("Reader")().get_pk(name)
        _singer(data, output, lambda rows, to: write(rows, full_name, to, allow_objects=True, **rest))
        return
    with _scratch(output) as scratch:
        part = scratch / "part"
        if not isinstance(data, pd.DataFrame):
            _WRITERS[kind](part, *_rows_of(data, scratch))
        elif values.get("stringify_objects") and kind == "parquet":
            singer_frame(data).to_parquet(part, engine="fastparquet", compression="zstd")
        else:
            _PANDAS_WRITERS[kind](data, part)
        part.replace(output / f"{full_name}.{kind}")


def to_singer(df: Any, stream: str, output_dir: str | os.PathLike[str], *args: Any, **options: Any) -> None:
    """Gluestick's ``to_singer``, which takes Spark frames and Arrow tables as well; as ``to_export``."""
    write = installed_name("to_singer")
    if isinstance(df, pd.DataFrame) or (_is_table(df) and not _is_polars(df)):
        _singer(df, Path(path_text(output_dir)), lambda rows, to: write(rows, stream, to, *args, **options))
    else:
        write(_without_binary(df, _SINGER), stream, output_dir, *args, **options)


# What Polars writes is not what the other exports have: its JSON has null for an infinite number and a blank
# in a time, and panics at binary; its CSV has no lists. Its Parquet is right, and so are gluestick's Singer
# messages of its frames, but for binary.
_POLARS_LOSES = ("csv", "json", "jsonl")


def _is_polars(frame: Any) -> bool:
    return type(frame).__module__.split(".")[0] == "polars"


def _is_table(frame: Any) -> bool:
    return _is_polars(frame) or library_of(frame) in ("spark", "arrow")


def _without_binary(frame: Any, kind: str) -> Any:
    if kind != _SINGER or not _is_polars(frame):
        return frame
    import polars as pl  # noqa: PLC0415 - lazy: an optional package, which is there

    return frame.with_columns(pl.col(pl.Binary).bin.encode("base64"))


def _require_possible(name: str, kind: str, values: dict[str, Any]) -> None:
    if kind != _SINGER and kind not in _WRITERS:
        raise InvalidOption(
            f"export_format cannot be {kind!r}.", remedy=f"Use one of {', '.join([_SINGER, *_WRITERS])}."
        )
    plugin = _plugin(name)
    for what, is_given in (
        ("stringify_objects", values.get("stringify_objects")),
        (plugin, plugin.is_file()),
    ):
        if is_given:
            raise InvalidOption(
                f"{what} can be used with a pandas frame only.",
                cause="gluestick applies it to all rows in memory.",
                remedy="Change the columns first, or convert the frame to pandas and export that.",
            )


def _plugin(name: str) -> Path:
    return Path(os.environ.get("ROOT_DIR", "."), "plugins", f"{name}_post_process.py")


_PANDAS_WRITERS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "csv": lambda frame, path: csv_frame(frame).to_csv(path, index=False),
    "json": lambda frame, path: _write_pieces(path, _as_array(json_lines_of(frame))),
    "jsonl": lambda frame, path: _write_pieces(path, json_lines_of(frame)),
    "parquet": lambda frame, path: frame.to_parquet(
        path, compression="zstd", compression_level=3, **parquet_options(frame)
    ),
}


@contextmanager
def _scratch(output: Path) -> Iterator[Path]:
    """A folder in the output that is removed afterwards."""
    scratch = output / f".export-{uuid.uuid4().hex}"
    try:
        scratch.mkdir(parents=True)
        yield scratch.resolve()
    except OSError as error:
        raise failure("write", str(output), error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _rows_of(frame: Any, scratch: Path) -> tuple[pa.Schema, Tables]:
    """Return the columns and the rows; those of a Spark or lazy frame as it has written them there."""
    rows = Rows(frame)
    if _is_polars(frame) and hasattr(frame, "sink_parquet"):  # a LazyFrame
        frame.sink_parquet(scratch / "rows.parquet")
        rows = Rows(pq.read_schema(scratch / "rows.parquet").empty_table())
        return rows.to_arrow().schema, _tables([scratch / "rows.parquet"])
    if not rows.is_spark:
        table = rows.to_arrow()
        return table.schema, iter([table])
    task = WriteTask(str(scratch / "rows"), takes_table=True, within=str(scratch))
    landed = shared_engine().write_batch(frame, task)
    schema = delta_to_arrow(landed.schema)
    if landed.table is not None:
        return schema, iter([in_schema(landed.table, schema)])
    return schema, _tables([scratch / "rows" / name for name in landed.files], schema)


def _tables(files: list[Path], schema: pa.Schema | None = None) -> Tables:
    for file in files:
        with pq.ParquetFile(file, pre_buffer=False) as parquet:  # else it holds all bytes of the file
            for batch in parquet.iter_batches(_PIECE_ROWS):
                yield Rows(batch).to_arrow() if schema is None else in_schema(batch, schema)


def _write_csv(part: Path, schema: pa.Schema, tables: Tables) -> None:
    header = csv_text(schema.empty_table())
    with part.open("w", encoding="utf-8", newline="") as file:
        file.write(header)
        for table in tables:
            file.write(csv_text(table).removeprefix(header))


def _write_pieces(part: Path, pieces: Iterable[bytes]) -> None:
    with part.open("wb") as file:
        file.writelines(pieces)


def _as_array(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield JSON Lines as one array."""
    before = b"["
    for piece in lines:
        yield before + piece.removesuffix(b"\n").replace(b"\n", b",\n")
        before = b",\n"
    yield b"[]\n" if before == b"[" else b"]\n"


def _lines(tables: Tables) -> Iterator[bytes]:
    return itertools.chain.from_iterable(json_lines(table, _PIECE_ROWS) for table in tables)


def _write_parquet(part: Path, schema: pa.Schema, tables: Tables) -> None:
    held = parquet_schema(schema)
    with pq.ParquetWriter(
        part, held, compression="zstd", compression_level=3, write_statistics=bounded_columns(held)
    ) as writer:
        for table in tables:
            writer.write_table(in_schema(table, held))


_WRITERS: dict[str, Callable[[Path, pa.Schema, Tables], None]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
    "json": lambda part, _, tables: _write_pieces(part, _as_array(_lines(tables))),
    "jsonl": lambda part, _, tables: _write_pieces(part, _lines(tables)),
}


def _singer(frame: Any, output: Path, write: Write) -> None:
    """Append the messages that gluestick writes for all rows: their schema, a record a row, and the state."""
    with _scratch(output) as scratch:
        sample = SchemaSample()
        records = scratch / "records"
        with records.open("wb") as part:
            for piece in _singer_pieces(frame, scratch):
                sample.add(piece)
                part.writelines(_messages(piece, scratch, write)[1][1:-1])
        name, messages = _messages(sample.row(), scratch, write)
        _append(output / name, messages[0], records, messages[-1])


def _singer_pieces(frame: Any, scratch: Path) -> Iterator[pd.DataFrame]:
    if isinstance(frame, pd.DataFrame):
        rows = singer_frame(frame)
        for start in range(0, max(len(rows), 1), _PIECE_ROWS):
            yield rows.iloc[start : start + _PIECE_ROWS]
        return
    schema, tables = _rows_of(frame, scratch)
    yield singer_frame_of(schema.empty_table())
    yield from map(singer_frame_of, tables)


def _messages(rows: pd.DataFrame, scratch: Path, write: Write) -> tuple[str, list[bytes]]:
    """Return the name of the file that gluestick writes for the rows, and its messages as lines."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    write(rows, str(folder))
    (file,) = folder.iterdir()
    messages = file.read_bytes().splitlines(keepends=True)
    shutil.rmtree(folder)
    return file.name, messages


def _append(target: Path, head: bytes, records: Path, end: bytes) -> None:
    """Add to the file, which holds other streams' messages; if that fails, it is as it was."""
    size = target.stat().st_size if target.exists() else None
    try:
        with target.open("ab") as file, records.open("rb") as lines:
            file.write(head)
            shutil.copyfileobj(lines, file, _COPY_BYTES)
            file.write(end)
    except BaseException:
        target.unlink(missing_ok=True) if size is None else os.truncate(target, size)
        raise
