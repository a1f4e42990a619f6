"""Which files are left, marked or rewritten."""

import random
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.given import tenant as open_tenant

from freezeframe.store.table.reader import LiveFile
from freezeframe.store.updates.plan import (
    FILES_PER_SIZE_MAX,
    MARKED_SHARE_MAX,
    SETTLED_BYTES,
    SMALLEST_BYTES,
    FileRule,
    _stored_range,
    choose,
    size_class,
)

VECTORS = FileRule(0, is_plain=False)
PLAIN = FileRule(0, is_plain=True)
UPDATES = 2_000
_LOW, _HIGH = Decimal("-0.50"), Decimal("99999999999999999.25")


@st.composite
def situations(draw):
    """Files of any size and share of deleted rows, and how many rows of each an update touches."""
    sizes = st.sampled_from([1, SMALLEST_BYTES, SETTLED_BYTES - 1, SETTLED_BYTES]) | st.integers(1, 10**9)
    files, touched = [], {}
    for number in range(draw(st.integers(0, 30))):
        rows = draw(st.integers(0, 1000))
        deleted = draw(st.integers(0, rows))
        file = LiveFile(f"f{number}", draw(sizes), rows, deleted)
        files.append(file)
        if rows > deleted and draw(st.booleans()):
            touched[file.path] = draw(st.integers(1, rows - deleted))
    rule = FileRule(draw(st.sampled_from([0, 2 * 1024 * 1024])), is_plain=draw(st.booleans()))
    return files, touched, rule


@given(found=situations())
def test_each_file_has_one_fate_that_fits_it(found):
    """No file is forgotten or invented; what changes is not left; plain tables are not marked."""
    files, touched, rule = found

    choices = choose(files, touched, rule)

    assert files == [choice.file for choice in choices]
    for choice in choices:
        count = touched.get(choice.file.path, 0)
        assert choice.reason
        assert choice.action != "left" or not count
        assert choice.action != "marked" or (count and not rule.is_plain)
        gone = choice.file.deleted + count
        assert choice.action == "rewritten" or gone <= choice.file.rows * MARKED_SHARE_MAX


@given(found=situations())
def test_files_that_stay_are_few_of_each_size(found):
    """After any update fewer than eight files of each size below the settled one are left as they are."""
    files, touched, rule = found

    stay = [choice.file for choice in choose(files, touched, rule) if choice.action != "rewritten"]

    small = [size_class(file.size) for file in stay if file.size < SETTLED_BYTES]
    assert all(small.count(size) < FILES_PER_SIZE_MAX for size in small)


def test_large_files_of_one_size_are_marked_and_not_joined():
    """A few changed rows in each of ten files of 9 MiB cost a few rows, not ninety MiB."""
    files = [LiveFile(f"f{number}", 9 * 1024 * 1024, 100_000) for number in range(10)]

    choices = choose(files, {file.path: 100 for file in files}, VECTORS)

    assert ["marked"] * 10 == [choice.action for choice in choices]


@given(size=st.integers(0, 10**12))
def test_sizes_grow_by_the_number_of_files_that_are_joined(size):
    """Eight files of one size make a file of a larger one, so that nothing is joined twice in a size."""
    assert size_class(size) <= size_class(size + 1)
    if size > SMALLEST_BYTES:
        assert size_class(FILES_PER_SIZE_MAX * size) == size_class(size) + 1


class Simulation:
    """A stream as its files' row numbers: what an update does to it, by the choices and nothing else."""

    BYTES_PER_ROW = 100

    def __init__(self, rows, rule, seed):
        self.random = random.Random(seed)
        self.rule = rule
        self.holds = {"first": set(range(rows))}
        self.written_rows = {"first": rows}
        self.of_row = dict.fromkeys(range(rows), "first")
        self.new_bytes = 0
        self.given_bytes = 0

    def files(self):
        return [
            LiveFile(path, rows * self.BYTES_PER_ROW, rows, rows - len(self.holds[path]))
            for path, rows in self.written_rows.items()
        ]

    def update(self, number, changed, added):
        """``changed`` stored rows get new values, ``added`` rows are new."""
        rows = self.random.sample(range(len(self.of_row)), changed)
        touched = {}
        for row in rows:
            touched[self.of_row[row]] = touched.get(self.of_row[row], 0) + 1
        content = {*rows, *range(len(self.of_row), len(self.of_row) + added)}
        for choice in choose(self.files(), touched, self.rule):
            path = choice.file.path
            if choice.action == "rewritten":
                content |= self.holds.pop(path)
                del self.written_rows[path]
            elif choice.action == "marked":
                self.holds[path] -= content
        path = f"u{number}"
        self.holds[path], self.written_rows[path] = content, len(content)
        self.of_row.update(dict.fromkeys(content, path))
        self.new_bytes += len(content) * self.BYTES_PER_ROW
        self.given_bytes += (changed + added) * self.BYTES_PER_ROW


@pytest.mark.parametrize(
    ("rule", "rows", "changed", "added", "amplification_max"),
    [
        (VECTORS, 20_000, 10, 0, 8),
        (VECTORS, 20_000, 2, 8, 8),
        (VECTORS, 0, 0, 10, 8),
        (PLAIN, 0, 0, 10, 8),
    ],
    ids=["changes", "mostly new", "only new", "only new, plain"],
)
def test_thousands_of_updates_leave_few_files(rule, rows, changed, added, amplification_max):
    """Over 2,000 updates of ten rows: files stay few, bytes written bounded, no row lost or doubled."""
    stream = Simulation(rows, rule, seed=5)
    for number in range(UPDATES):
        stream.update(number, changed, added)
        if number % 100 == 99:
            total = sum(stream.written_rows.values())
            sizes = size_class(total * stream.BYTES_PER_ROW) + 1
            assert FILES_PER_SIZE_MAX * sizes + 1 >= len(stream.holds), "a read meets too many files"
            live = sum(len(held) for held in stream.holds.values())
            assert live == len(set().union(*stream.holds.values())) == rows + (number + 1) * added
            assert total <= 2 * live + 1, "a read meets more than twice the rows that there are"
    assert amplification_max >= stream.new_bytes / stream.given_bytes


def test_small_streams_are_written_anew_as_a_whole():
    """Below the bound there is one file and no vector, whatever is touched."""
    files = [LiveFile("a", 1000, 10), LiveFile("b", 1000, 10)]

    fates = [choice.action for choice in choose(files, {"a": 1}, FileRule(2001, is_plain=False))]

    assert fates == ["rewritten", "rewritten"]
    assert [choice.action for choice in choose(files, {"a": 1}, FileRule(2000, is_plain=False))] == [
        "marked",
        "left",
    ]


@pytest.mark.parametrize(
    ("kind", "first", "second", "found"),
    [
        (pa.int64(), [2**53 + 1, None], [-(2**60)], (-(2**60), 2**53 + 1)),
        (pa.decimal128(38, 2), [_HIGH], [_LOW], (_LOW, _HIGH)),
        (pa.int64(), [7], [None], (7, 7)),
    ],
)
def test_the_stored_range_is_exact_and_passes_over_files_without_values(local, kind, first, second, found):
    """By it a wider type is chosen, so digits beyond those of a double count."""
    stream = open_tenant(local, vectors_from_bytes=0).stream("Account")
    for begin, values in ((0, first), (10, second)):
        ids = range(begin, begin + len(values))
        stream.update(pa.table({"Id": [str(n) for n in ids], "v": pa.array(values, kind)}), key="Id")

    snapshot = stream.snapshot()
    assert snapshot.count == 2
    assert _stored_range(snapshot, "v") == found
