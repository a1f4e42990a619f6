"""States after a power loss of one recording, each opened by our own code."""

import contextlib
import hashlib
import shutil
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from tests.power_loss.disk import MODES, Disk
from tests.power_loss.recording import record
from tests.power_loss.scenarios import SCENARIOS

THOROUGH_EVERY = 20
NOT_KEPT = "-shm"  # SQLite makes it anew, by a mapping of memory that no call shows


def record_scenarios(folder, names=tuple(SCENARIOS)):
    """The calls of scenarios, whose replay makes exactly the folder that they left."""
    for name in names:
        (folder / "disk" / name).mkdir(parents=True)
    calls = record(folder, ["tests.power_loss.scenarios", str(folder / "disk"), str(folder / "said"), *names])
    for name in names:
        disk = Disk(folder / "disk" / name)
        for call in calls:
            disk.apply(call)
        there = {"": None}
        for path in (folder / "disk" / name).rglob("*"):
            there[f"/{path.relative_to(folder / 'disk' / name)}"] = (
                path.read_bytes() if path.is_file() else None
            )
        made = disk.after_power_loss(Random(0), "kept")
        assert _named(there) == _named(made), "the recording does not make what the process made"
    return calls


def _named(contents):
    return {path: data for path, data in contents.items() if not path.endswith(NOT_KEPT)}


def try_states(name, folder, calls, seed, *, states_max=None, known=None, obeys_fsync=True):
    """Counts by kind of the states that were tried, and what was wrong with them.

    After each call that changes the disk a state of each mode, or about ``states_max`` spread over the calls;
    those in ``known`` were tried before.
    """
    scenario, random = SCENARIOS[name](), Random(seed)
    root = folder / "disk" / name
    disk, counts, wrong, known = (
        Disk(root, obeys_fsync=obeys_fsync),
        Counter(),
        [],
        set() if known is None else known,
    )
    changing = sum(map(Disk(root).apply, calls))
    chance = 1.0 if states_max is None else states_max / (changing * len(MODES))
    begun = done = 0
    for call in calls:
        if call.name == "write" and call.paths[0] == str(folder / "said"):
            begun += call.data == f"begun {name}\n".encode()
            done += call.data == f"done {name}\n".encode()
        elif not disk.apply(call):
            continue
        for mode in MODES:
            if random.random() >= chance:
                continue
            state = disk.after_power_loss(random, mode)
            mark = (begun, done, _digest(state))
            if mark in known:
                continue
            known.add(mark)
            counts[f"{name}, {mode}"] += 1
            thorough = not len(known) % THOROUGH_EVERY
            seen = _check(scenario, folder / f"{name}-{len(known)}", state, done, begun, thorough)
            if seen:
                wrong.append(f"{name}, {mode}, seed {seed}, state {len(known)}, after {call.name}: {seen}")
        if wrong:
            break
    return counts, wrong


def _digest(state):
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(state):
        found.update(path.encode() + b"\0")
        found.update(b"folder" if state[path] is None else hashlib.blake2b(state[path]).digest())
    return found.digest()


def _check(scenario, place, state, done, begun, thorough):
    """What is wrong with a state, as text; its folder stays then."""
    for path in sorted(state):
        target = Path(f"{place}{path}")
        if state[path] is None:
            target.mkdir(mode=0o700)
        else:
            target.write_bytes(state[path])
    try:
        scenario.check(place, done, begun, thorough)
    except Exception:  # noqa: BLE001 - whatever our code says of a legal state is what is looked for
        return traceback.format_exc()
    with contextlib.suppress(OSError):
        shutil.rmtree(place)
    return ""
