"""Random updates of one stream, and what the rules make of them, over plain values.

``docs/reference/semantics.md`` has the rules, ``update_cells`` the values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest
from tests.store.update_cells import (
    DAYS,
    KEY_KINDS,
    KINDS,
    TEXT_KINDS,
    TOLD_KINDS,
    Kind,
    as_text,
    column_of,
    exact,
    nested_kind,
    rows_of,
)
from tests.typed_columns import key_form, same_form

from freezeframe.errors import BadInput
from freezeframe.store.schema.type_compatibility import comparison_type

# Names that would break a plan which is not careful: dots, quotes, and words of a comparison.
KEYS = ("o0", "a.b`c")
_OTHERS = ("fate", "count", "when ?", 'nth "x"')
_VALUES = 3


@dataclass(frozen=True)
class Step:
    """One update: rows of typed columns, the options of the call, and whether a text of it is broken."""

    kinds: Mapping[str, Kind]
    rows: list[dict]
    options: dict = field(default_factory=dict)
    broken: str = ""

    def frame(self):
        """The rows as an Arrow table."""
        cells = {name: [row[name] for row in self.rows] for name in self.kinds}
        columns = {name: column_of(cells[name], kind) for name, kind in self.kinds.items()}
        if self.broken:
            content = pa.array([b"\xff"] * len(self.rows), pa.binary())
            columns[self.broken] = pa.Array.from_buffers(pa.string(), len(self.rows), content.buffers())
        return pa.table(columns)


@dataclass
class Model:
    """A stream by the rules: its columns' types, its rows by key, and what the last update did."""

    key: list[str]
    kinds: dict[str, pa.DataType] = field(default_factory=dict)
    rows: dict[tuple, dict] = field(default_factory=dict)
    counts: tuple = ()
    deleted: int = 0
    changed: dict[tuple, str] = field(default_factory=dict)
    """Rows that are new or updated, by key."""

    def key_of(self, row):
        """The row's key, comparable."""
        return tuple(key_form(row[name], self.kinds[name]) for name in self.key)

    def form(self, row):
        """The row's cells, comparable; null where it has none."""
        return tuple(
            (name, (key_form if name in self.key else same_form)(row[name], kind))
            for name, kind in sorted(self.kinds.items())
            if row.get(name) is not None
        )

    def content(self):
        """All rows, by key."""
        return {key: self.form(row) for key, row in self.rows.items()}

    def apply(self, step):
        """The update, as the rules have it."""
        dropped = step.options.get("drop_column", ())
        kinds = {name: kind.stored for name, kind in step.kinds.items() if name not in dropped}
        rows = [{name: row[name] for name in kinds} for row in step.rows]
        if step.options.get("null_keys") == "drop":
            rows = [row for row in rows if all(row[name] is not None for name in self.key)]
        self.kinds = {name: kind for name, kind in self.kinds.items() if name not in dropped}
        for row in self.rows.values():
            for name in dropped:
                row.pop(name, None)
        before, self.changed = self.rows, {}
        if step.options.get("override"):
            self._override(rows, kinds)
        elif rows or not self.kinds or step.options.get("mode") == "full":
            self._upsert(rows, kinds, step.options)
        met = {self.key_of(row) for row in rows}
        deleted = self.deleted if step.options.get("override") else self._absent(met, before, step.options)
        kinds_of_change = list(self.changed.values())
        inserted, updated = kinds_of_change.count("insert"), kinds_of_change.count("update")
        self.counts = inserted, updated, len(met) - inserted - updated, deleted

    def _absent(self, met, before, options):
        if options.get("mode") != "full":
            return 0
        gone = [key for key in before if key not in met]
        self.rows = {key: row for key, row in self.rows.items() if key in met}
        return len(gone)

    def _upsert(self, rows, kinds, options):
        if options.get("on_drift") == "string":
            rows = self._with_texts(rows, kinds)
        self.kinds = {**kinds, **self.kinds}
        result = dict(self.rows)
        for key, row in {self.key_of(row): row for row in rows}.items():
            old = self.rows.get(key)
            keeps = options.get("nulls", "keep") == "keep"
            new = {name: cell for name, cell in row.items() if old is None or cell is not None or not keeps}
            result[key] = {**(old or {}), **new}
            if old is None:
                self.changed[key] = "insert"
            elif self.form(old) != self.form(result[key]):
                self.changed[key] = "update"
        self.rows = result

    def _with_texts(self, rows, kinds):
        """The rows, with text where stored and new types differ; there stored values become text as well."""
        for name in [name for name, kind in kinds.items() if self.kinds.get(name, kind) != kind]:
            rows = [_with_text(row, name, kinds[name]) for row in rows]
            self.rows = {key: _with_text(row, name, self.kinds[name]) for key, row in self.rows.items()}
            self.kinds[name] = pa.string()
        return rows

    def _override(self, rows, kinds):
        held = self.kinds
        common = {name: held.get(name) and comparison_type(held[name], kind) for name, kind in kinds.items()}
        old_kinds, old_rows = self.kinds, list(self.rows.values())
        self.kinds = dict(kinds)
        self.rows = {self.key_of(row): row for row in rows}
        has_same_keys = all(common[name] is not None for name in self.key)

        def key_in_common(row, of):
            return tuple(_compared(_unsigned(row[name]), of[name], common[name]) for name in self.key)

        old = {key_in_common(row, old_kinds): row for row in old_rows} if has_same_keys else {}
        met = 0
        for key, row in self.rows.items():
            there = old.get(key_in_common(row, kinds)) if has_same_keys else None
            met += there is not None
            if there is None:
                self.changed[key] = "insert"
            elif any(
                not _same(there.get(name), old_kinds.get(name), row[name], kinds[name], common[name])
                for name in kinds
                if name not in self.key
            ):
                self.changed[key] = "update"
        self.deleted = len(old_rows) - met


def _with_text(row, name, kind):
    is_told = row.get(name) is not None and not pa.types.is_string(kind)
    return {**row, name: as_text(row[name], kind)} if is_told else row


def _unsigned(value):
    return value + 0.0 if isinstance(value, float) else value


def _same(old, old_kind, new, new_kind, common):
    if old is None or new is None or common is None:
        return old is new is None
    return _compared(old, old_kind, common) == _compared(new, new_kind, common)


def _compared(value, kind, common):
    """The value as it is compared: as text where the other side is text."""
    return as_text(value, kind) if value is not None and pa.types.is_string(common) else exact(value, kind)


# Random updates


@dataclass(frozen=True)
class Chances:
    """What may be drawn, and how it is passed."""

    frame: Callable = Step.frame
    """A step's rows as they are passed."""
    is_unordered: bool = False
    """Frames whose rows have no order, so that no key repeats; they hold nested values, and text as it is."""


def history(random, steps, chances):
    """So many updates of a stream; the first one says what its columns and key are."""
    key = list(KEYS)[: random.choice([1, 1, 2])]
    others = _OTHERS[: random.randint(1, 4)]
    kinds = {name: _some_kind(random, KEY_KINDS) for name in key}
    kinds |= {name: _some_value_kind(random, chances) for name in others}
    ways, weights = ["upsert", "override", "broken", "drift", "whole"], [6, 3, not chances.is_unordered, 1, 3]
    written = set()
    for number in range(steps):
        way = random.choices(ways, weights)[0] if number else "upsert"
        if way == "override":
            kinds = {
                name: _another_kind(random, kind, chances, is_key=name in key) for name, kind in kinds.items()
            }
        drifting = [name for name in sorted(written - {*key}) if _may_drift(kinds[name])]
        if way == "drift" and drifting:
            name = random.choice(drifting)
            is_text = pa.types.is_string(kinds[name].stored)
            other = _some_kind(random, TOLD_KINDS if is_text else TEXT_KINDS)
            step = _step(random, key, {**kinds, name: other}, way)
            for row in step.rows:  # a column without values has no type of its own
                row[name] = random.choice(other.pool)
            # Texts of dates alone would be dates in a column of dates.
            step.rows[0][name] = next(cell for cell in other.pool if cell not in DAYS.values())
            kinds = kinds if is_text else {**kinds, name: other}
        else:
            step = _step(random, key, kinds, way)
        if chances.is_unordered:
            step = _with_unique_keys(step, key)
        dropped = step.options.get("drop_column", ())
        kinds = {name: kind for name, kind in kinds.items() if name not in dropped}
        if step.options.get("override"):  # without rows, too
            written &= step.kinds.keys()
        if step.rows and step.options["null_keys"] == "error" and not step.broken:
            written |= step.kinds.keys()
        written &= kinds.keys()
        yield step


def _may_drift(kind):
    """Whether a column can meet another type as text."""
    return pa.types.is_string(kind.stored) or any(kind.stored == item.stored for item in TOLD_KINDS)


def _another_kind(random, kind, chances, *, is_key):
    if random.random() < (0.1 if is_key else 0.5):
        return _some_kind(random, KEY_KINDS) if is_key else _some_value_kind(random, chances)
    return kind


def _some_value_kind(random, chances):
    is_nested = random.random() < (0.7 if chances.is_unordered else 0.2)
    return nested_kind(random) if is_nested else _some_kind(random, KINDS)


def _some_kind(random, kinds):
    """A kind with few of its values, neighbours in its pool, so that rows meet and cells are nearly alike."""
    kind = random.choice(kinds)
    begin = random.randrange(len(kind.pool))
    return replace(kind, pool=[*kind.pool, *kind.pool][begin : begin + _VALUES])


def _step(random, key, kinds, way):
    options = {
        "nulls": random.choice(["keep", "overwrite"]),
        "null_keys": random.choice(["error", "match", "drop"]),
    }
    others = [name for name in kinds if name not in key]
    given = key + random.sample(others, random.randint(0, len(others)))
    columns = {name: kinds[name] for name in given}
    if way in ("override", "drift"):
        columns = dict(kinds) if way == "drift" or random.random() < 0.6 else columns
        options |= {"override": True} if way == "override" else {"on_drift": "string", "null_keys": "error"}
    if way == "whole" and random.random() < 0.5:
        options |= {"mode": "full", "max_delete_ratio": 1.0}
    elif way == "whole" and others:
        options["drop_column"] = [random.choice(others), "unknown"]
    rows = [
        _row(random, key, columns, options)
        for _ in range(random.choice([1, 4] if way == "drift" else [0, 1, 2, 3, 6]))
    ]
    broken = ""
    texts = [name for name, kind in columns.items() if kind.came == pa.string()]
    if way == "broken" and rows and texts:
        broken = random.choice(texts)
    return Step(columns, rows, options, broken)


def _with_unique_keys(step, key):
    model = Model(key, {name: step.kinds[name].stored for name in key})
    return replace(step, rows=list({model.key_of(row): row for row in step.rows}.values()))


def _row(random, key, columns, options):
    has_null_key = options["null_keys"] != "error" and random.random() < 0.15
    return {
        name: random.choice(kind.pool)
        if name in key and not has_null_key
        else random.choice([*kind.pool, None, None])
        for name, kind in columns.items()
    }


# Proof


def prove(stream, random, steps, chances):
    """Carry out a random history, and compare all that can be seen of it with the rules."""
    model, versions = None, {}
    for step in history(random, steps, chances):
        model = model or Model([name for name in step.kinds if name in KEYS])
        if step.broken:
            _prove_refused(stream, model, step)
            continue
        before = model.kinds, model.content()
        receipt = stream.update(chances.frame(step), key=model.key, **step.options)
        model.apply(step)
        assert receipt.committed == (before != (model.kinds, model.content())), step
        assert model.counts == (receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted), step
        assert model.kinds == {column.name: column.type for column in stream.schema}, step
        assert model.content() == found(stream.read(as_="arrow"), model), step
        _prove_changes(model, receipt.changed_rows("arrow"), step)
        versions[receipt.version] = (Model(model.key, dict(model.kinds)), model.content())
    for version, (then, content) in versions.items():
        assert content == found(stream.read(as_="arrow", version=version), then)


def found(table, model):
    """The content of a table, by key."""
    content = {model.key_of(row): model.form(row) for row in rows_of(table)}
    assert len(content) == len(table), "a key is there twice"
    return content


def _prove_refused(stream, model, step):
    before = stream.version
    with pytest.raises(BadInput, match="UTF-8"):
        stream.update(step.frame(), key=model.key, **step.options)
    assert before == stream.version


def _prove_changes(model, changes, step):
    kinds = changes["_change_type"].to_pylist()
    assert model.counts[3] == kinds.count("delete"), step
    if not kinds:
        assert model.changed == {}, step
        return
    rows = rows_of(changes.drop_columns(["_change_type", "_before"]))
    told = {
        model.key_of(row): (kind, model.form(row))
        for kind, row in zip(kinds, rows, strict=True)
        if kind != "delete"
    }
    assert {key: (kind, model.form(model.rows[key])) for key, kind in model.changed.items()} == told, step
