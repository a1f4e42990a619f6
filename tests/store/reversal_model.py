"""What taking a version back leaves, worked out on dictionaries of cells.

A state is (streams, files); a stream is (version of its table, types of its columns, rows): a dictionary of
the cells that have a value, by key.
"""

import copy

import pyarrow as pa


def equal(left, right):
    return left is right or (left is not None and right is not None and str(left) == str(right))


def fitted(value, kind):
    """The value in a type; None where it cannot have it."""
    if value is None or kind == "string":
        return None if value is None else str(value)
    return int(value) if str(value).lstrip("-").isdigit() else None


def cells_back(before, after, now, chosen):  # noqa: C901 - the rule in one place
    """The rows that a reversion leaves, the cells that go back, and what stays: {key: number of cells}."""
    (_, old_types, old), (_, new_types, new), (_, types, rows_now) = before, after, now
    returning = {name: kind for name, kind in old_types.items() if name not in new_types | types}
    known, found, kept, cells = {**types, **returning}, copy.deepcopy(rows_now), {}, 0
    for key in filter(chosen, sorted(old.keys() | new.keys())):
        was, made, is_ = (side.get(key) for side in (old, new, rows_now))
        stays = 0
        if was is None and is_ is not None:
            stays = sum(not equal(made.get(name), is_.get(name)) for name in types)
            if not stays:
                del found[key]
        elif made is None and is_ is not None:
            stays = sum(not equal(was.get(name), is_.get(name)) for name in known)
        elif made is None:
            stays = sum(name in was and fitted(was[name], kind) is None for name, kind in known.items())
            if not stays:
                found[key] = {name: fitted(was[name], kind) for name, kind in known.items() if name in was}
        elif was is not None:
            for name, kind in known.items():
                if equal(was.get(name), made.get(name)) or (
                    is_ is not None and equal(was.get(name), is_.get(name))
                ):
                    continue
                value = fitted(was.get(name), kind)
                if is_ is None or not equal(made.get(name), is_.get(name)) or (value is None and name in was):
                    stays += 1
                    continue
                cells += 1
                found[key].pop(name, None)
                found[key] |= {} if value is None else {name: value}
        if stays:
            kept[key] = stays
    return found, cells, kept


def reverted(before, after, now, only=None, chosen=None, released=()):
    """The rows of each stream and the files, and of streams that went back by cells the cells and what stays.

    ``only`` names a stream; ``chosen`` says of a key whether its row is selected.
    """
    streams = {name: copy.deepcopy(rows) for name, (_, _, rows) in now[0].items()}
    files, told = dict(now[1]), {}
    for name in sorted(before[0].keys() | after[0].keys()):
        old, new, is_ = (side[0].get(name) for side in (before, after, now))
        if (old and old[0]) == (new and new[0]) or (only and name not in only) or name in released:
            continue
        if chosen is None and (is_ and is_[0]) == (new and new[0]):
            streams.pop(name, None)
            streams |= {name: old[2]} if old else {}
        elif new and is_:
            found, cells, kept = cells_back(old or (-1, {}, {}), new, is_, chosen or (lambda _: True))
            streams[name], told[name] = found, (cells, kept)
    for path in () if only else sorted(before[1].keys() | after[1].keys()):
        old, new, is_ = (side[1].get(path) for side in (before, after, now))
        if is_ == new != old:
            files.pop(path, None)
            files |= {path: old} if old is not None else {}
    return streams, files, told


# Random histories, and the states of a tenant as the model has them.

NAMES = ("Account", "Lead")
PATHS = ("a.csv", "b.csv")


def held(stream):
    """The cells of a stream by key, without those that are null."""
    found = {}
    for row in stream.read(as_="arrow").to_pylist():
        key = row.pop("Id")
        found[key] = {name: value for name, value in row.items() if value is not None}
    return found


def state_of(reader):
    streams = {}
    for name in reader.streams():
        stream = reader.stream(name)
        types = {field.name: str(field.type) for field in stream.schema if field.name != "Id"}
        streams[name] = (stream.stream_version, types, held(stream))
    return streams, {file.path: reader.files.read(file.path) for file in reader.files.list()}


def random_rows(dice):
    ids = dice.sample(range(6), dice.randint(0, 4))
    kinds = {
        "a": lambda: dice.choice([None, 0, 1, 2]),
        "b": lambda: dice.choice([None, 0, 1, 2]),
        "t": lambda: dice.choice([None, 1, 2]),
    }
    names = dice.sample(sorted(kinds), dice.randint(1, 3))
    columns = {name: pa.array([kinds[name]() for _ in ids], pa.int64()) for name in names}
    if "t" in columns and dice.random() < 0.4:
        columns["t"] = pa.array([dice.choice([None, "1", "x"]) for _ in ids], pa.string())
    return pa.table({"Id": pa.array(ids, pa.int64()), **columns})


def random_change(dice, tenant):
    """Any change but a reversion."""
    kind, name = dice.random(), dice.choice(NAMES)
    stream = tenant.stream(name)
    if kind < 0.08 and name in tenant:
        tenant.drop_stream(name)
    elif kind < 0.14 and tenant.version >= 0:
        tenant.restore(dice.choice([entry.version for entry in tenant.history()]))
    elif kind < 0.3:
        path = dice.choice(PATHS)
        if dice.random() < 0.3 and tenant.files.exists(path):
            tenant.files.delete(path)
        else:
            tenant.files.write(path, dice.choice([b"1", b"2"]))
    else:
        batch, options = random_rows(dice), {"key": "Id", "on_drift": "string"}
        if kind < 0.4:
            options = {"key": "Id", "override": True}
        elif kind < 0.55:
            options |= {"mode": "full", "max_delete_ratio": 1.0}
        elif kind < 0.65 and name in tenant:
            options |= {"drop_column": dice.choice(["a", "b", "t"])}
        options |= {} if kind < 0.4 else {"nulls": dice.choice(["keep", "overwrite"])}
        stream.update(batch, **options)
