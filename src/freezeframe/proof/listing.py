"""What one client creates or deletes, another one lists so at once, in order."""

from __future__ import annotations

from freezeframe.proof.task import Task

PROMISE = "A listing shows what was created and deleted before it, in the order of the names."
_NAMES = 60


def run(task: Task) -> None:
    """See the module."""
    for place, random in task.rounds():
        writer, reader = place.storage(), place.storage()
        there: set[str] = set()
        for _ in range(_NAMES):
            name = f"{random.randrange(10**6):06}{random.choice(['', 'é', '~', '.json'])}"
            if name in there or (there and random.random() < 0.25):  # noqa: PLR2004 - a quarter deletes
                name = name if name in there else random.choice(sorted(there))
                writer.delete(f"list/{name}")
                there.discard(name)
            else:
                writer.put_if_absent(f"list/{name}", b"x")
                there.add(name)
            start = f"{random.randrange(10**6):06}"
            for begin in ("", start):
                found = [one.name for one in reader.list_from("list", begin)]
                expected = sorted((one for one in there if one >= begin), key=str.encode)
                task.require(found == expected, _difference(found, expected))
                task.counts["listings"] += 1
        task.counts["changes"] += _NAMES


def _difference(found: list[str], expected: list[str]) -> str:
    missing, more = sorted({*expected} - {*found}), sorted({*found} - {*expected})
    if not missing and not more:
        return "a listing was not in the order of the names"
    return f"a listing had {len(expected)} names to show: {missing[:3]} were missing, {more[:3]} were deleted"
