"""The installed gluestick and the drop-in, side by side on the same input: the same rows come out."""

import inspect

import pandas as pd
import pytest

import freezeframe.gluestick as gs

gluestick = pytest.importorskip("gluestick", reason="gluestick is not installed (pip install gluestick)")

# gluestick calls pandas in ways that pandas 2.3 warns about; what comes out is compared here.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

FIRST = pd.DataFrame({"id": [1, 2, 3], "line": [1, 1, 1], "v": ["a", "b", "c"]})
LATER = pd.DataFrame({"id": [2, 4], "line": [1, 1], "v": ["B", "d"]})
FUNCTIONS = [
    "drop_redundant",
    "get_row_hash",
    "merge_id_from_snapshot",
    "read_csv_folder",
    "read_parquet_folder",
    "read_snapshots",
    "snapshot_records",
]


def _rows(frame):
    plain = frame.astype(object).where(frame.notna(), None)
    return sorted(map(repr, plain[sorted(plain.columns)].to_numpy().tolist()))


def _both(tmp_path, use):
    """What `use` makes of either module in a directory of its own."""
    results = []
    for module in (gluestick, gs):
        directory = tmp_path / module.__name__
        directory.mkdir(exist_ok=True)
        results.append(use(module, str(directory)))
    return results


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_begin_with_gluesticks_own(name):
    """Names, order and defaults; what we add comes after."""

    def parameters(module):
        return [
            (
                parameter.name,
                list(parameter.default)
                if isinstance(parameter.default, dict | list | tuple)
                else parameter.default,
            )
            for parameter in inspect.signature(getattr(module, name)).parameters.values()
        ]

    theirs = [(name, [] if default is None else default) for name, default in parameters(gluestick)]
    ours = [(name, [] if default is None else default) for name, default in parameters(gs)]
    assert theirs == ours[: len(theirs)]


@pytest.mark.parametrize("options", [{}, {"pk": ["id", "line"]}, {"just_new": True}, {"overwrite": True}])
def test_snapshot_records_gives_the_same_rows(tmp_path, options):
    """Two syncs, and what is read afterwards."""

    def two_syncs(module, directory):
        first = module.snapshot_records(FIRST, "Deals", directory, **options)
        later = module.snapshot_records(LATER, "Deals", directory, **options)
        return [_rows(first), _rows(later), _rows(module.read_snapshots("Deals", directory))]

    theirs, ours = _both(tmp_path, two_syncs)
    assert theirs == ours


def test_drop_redundant_gives_the_same_rows(tmp_path):
    """With a key and unique rows; the flag from the second run on, where gluestick has it."""

    def two_runs(module, directory):
        module.drop_redundant(FIRST, "Deals", directory, pk=["id"])
        later = pd.concat([FIRST.head(1), LATER], ignore_index=True)
        return _rows(module.drop_redundant(later, "Deals", directory, pk=["id"], updated_flag=True))

    theirs, ours = _both(tmp_path, two_runs)
    assert theirs == ours
    assert len(ours) == 2


def test_a_directory_of_gluesticks_is_gone_on_with(tmp_path):
    """gluestick's first sync, then ours: the rows are those of two syncs by gluestick."""
    directory = str(tmp_path)
    gluestick.snapshot_records(FIRST, "Deals", directory)
    gluestick.drop_redundant(FIRST, "Sent", directory, pk=["id"])
    merged = gs.snapshot_records(LATER, "Deals", directory)
    fresh = gs.drop_redundant(pd.concat([FIRST, LATER]), "Sent", directory, pk=["id"])
    assert _rows(pd.concat([FIRST, LATER]).drop_duplicates("id", keep="last")) == _rows(merged)
    assert _rows(LATER) == _rows(fresh)


def test_merge_id_from_snapshot_gives_the_same_rows(tmp_path):
    """An id map of text with its last entry for an id."""

    def merged(module, directory):
        with open(f"{directory}/contacts_F1.snapshot.csv", "w") as file:  # noqa: PTH123 - text is given
            file.write("InputId,RemoteId\nx1,r1\nx1,r2\nx2,r3\n")
        frame = pd.DataFrame({"externalId": ["x2", "x1", "x9"], "n": [1, 2, 3]})
        return _rows(module.merge_id_from_snapshot(frame, directory, "contacts", "F1", "Id"))

    theirs, ours = _both(tmp_path, merged)
    assert theirs == ours


def test_folders_give_the_same_rows(tmp_path):
    """One file a stream, values whose types nobody disputes."""
    FIRST.to_csv(tmp_path / "Deals-20200811T121507.csv", index=False)
    LATER.to_parquet(tmp_path / "Leads-20200811T121507.parquet", index=False)
    path = str(tmp_path)
    for read in ("read_csv_folder", "read_parquet_folder"):
        theirs, ours = getattr(gluestick, read)(path), getattr(gs, read)(path)
        assert list(theirs) == list(ours)
        assert [_rows(frame) for frame in theirs.values()] == [_rows(frame) for frame in ours.values()]
