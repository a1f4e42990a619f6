"""The way from ``update_snapshot`` to the Parquet file is short."""

import traceback
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

import freezeframe

FRAMES_MAX = 9
PACKAGE = str(Path(freezeframe.__file__).parent)


def test_an_update_reaches_the_parquet_file_in_nine_frames(tmp_path, monkeypatch):
    """Frames of this package from ``update_snapshot`` to the call of ``pq.write_table``."""
    ways = []

    def traced(*arguments, **options):
        frames = [frame.name for frame in traceback.extract_stack() if frame.filename.startswith(PACKAGE)]
        ways.append(frames[frames.index("update_snapshot") :])
        return write_table(*arguments, **options)

    freezeframe.update_snapshot(tmp_path, "Account", "Id", pd.DataFrame({"Id": [1, 2], "v": ["a", "b"]}))
    write_table = pq.write_table
    monkeypatch.setattr(pq, "write_table", traced)
    freezeframe.update_snapshot(tmp_path, "Account", "Id", pd.DataFrame({"Id": [2, 3], "v": ["x", "y"]}))

    assert ways
    assert all(len(way) <= FRAMES_MAX for way in ways), ways
