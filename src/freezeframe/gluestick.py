"""The drop-in for gluestick: ``import freezeframe.gluestick as gs`` in place of ``import gluestick as gs``.

Functions have gluestick's names and the same first parameters. Where a result differs, it
does so on purpose: values keep their text until their type is certain, all files of a stream
are read, and a damaged file is an error that names file and line.
"""

from freezeframe.script.reading import read_csv_folder, read_parquet_folder

__all__ = ["read_csv_folder", "read_parquet_folder"]
