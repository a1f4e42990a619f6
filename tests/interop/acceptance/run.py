# ruff: noqa: E501 - statements of SQL and rows of tables are read as one line
"""One workload of the acceptance run: its tables are made, each reader is asked, and differences are named."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.interop.acceptance.damage import DAMAGE, Damaged, base
from tests.interop.acceptance.readers import DeltaRs, Ours, Question, Refusal, Rows, Spark, answer
from tests.interop.acceptance.tables import (
    BEGIN,
    DELTA_RS,
    PARTITIONS,
    SPARK,
    STEP,
    Maker,
    copied,
    with_even_times,
)

SEEDS = {**dict.fromkeys(SPARK, 2), **dict.fromkeys(DELTA_RS, 14), **dict.fromkeys(DAMAGE, 5)}
SEEDS |= {"partitions of every type": len(PARTITIONS), "type widening": 7}
"""How many tables the whole run has of each workload."""
ASKED_AT_ONCE, DAY = 6, 86_400


@dataclass(frozen=True, order=True)
class Difference:
    """A question, and what the readers say to it where they do not say the same."""

    asked: str
    ours: str
    sparks: str
    delta_rs: str


class Run:
    """Tables below one folder. Sound tables that damage begins with are made once."""

    def __init__(self, root, session):
        self.root = root
        self.session = session
        self.bases = {}
        self.answers = {}
        self.tables = {}

    def base(self, name):
        if name not in self.bases:
            folder = self.root / f"base {len(self.bases)}"
            base(name, lambda path: Maker(path, self.session, 0), str(folder))
            self.bases[name] = folder
        return self.bases[name]

    def table(self, workload, seed):
        """(the folder of a table, whether it has a change feed)."""
        place = self.root / f"{workload} {seed}"
        if place in self.tables:
            return place, self.tables[place]
        place, self.tables[place] = self.made(workload, seed, place)
        return place, self.tables[place]

    def made(self, workload, seed, place):
        if workload in DAMAGE:
            bases, damage = DAMAGE[workload]
            folder = copied(self.base(bases[seed % len(bases)]), place)
            with_even_times(folder)
            damage(Damaged(folder, random.Random(f"{workload} {seed}")))
            return folder, False
        made = Maker(str(self.root / f"made {workload} {seed}"), self.session, seed)
        {**SPARK, **DELTA_RS}[workload](made)
        folder = copied(self.root / f"made {workload} {seed}", place)
        with_even_times(folder)
        return folder, made.has_change_feed

    def differences(self, workload, seed):
        """(how many questions were asked, the differences with their counts)."""
        folder, has_changes = self.table(workload, seed)
        commits = len([file for file in (folder / "_delta_log").glob("*.json") if len(file.name) == 25])
        asked = questions(random.Random(f"questions {workload} {seed}"), commits, has_changes, seed)
        answers = [
            self.asked_of(reader(str(folder), self.session), asked) for reader in (Ours, Spark, DeltaRs)
        ]
        found = Counter()
        for question, *said in zip(asked, *answers, strict=True):
            self.answers[workload, seed, question] = said
            found[compared(question.name, *said)] += 1
        del found[None]
        return len(asked), found

    def asked_of(self, reader, asked):
        """The answers of one reader. Spark is asked all at once: most of its time is spent on planning."""
        is_ours = isinstance(reader, Ours)
        once = [item for item in asked if is_ours or item.name != "dataset"]
        with ThreadPoolExecutor(ASKED_AT_ONCE if isinstance(reader, Spark) else 1) as pool:
            said = dict(zip(once, pool.map(partial(answer, reader), once), strict=True))
        filtered = next((said[item] for item in once if item.below is not None), None)
        return [said.get(item, filtered) for item in asked]


def questions(chance, commits, has_changes, seed):
    """What one table is asked: its newest version, and more in turns of the seed."""
    last = max(0, commits - 1)
    version, bound = chance.randint(0, last), chance.randint(0, 12)
    more = [
        [Question("version", version=version)],
        [Question("time", moment=BEGIN + version * STEP)],
        [Question("below a bound", below=bound), Question("dataset", below=bound)],
        [Question("version too new", version=last + 4)],
        [Question("detail")],
        [Question("time too early", moment=BEGIN - DAY)],
        [Question("history")],
        [Question("time too late", moment=BEGIN + DAY)],
    ]
    asked = [Question("latest"), *more[(seed + chance.randint(0, 1) * 4) % len(more)]]
    return [*asked, Question("changes")] if has_changes else asked


def compared(asked, we, spark, delta_rs):
    """The difference between three answers, or None; delta-rs has no classes of errors to compare."""
    both_refuse = isinstance(spark, Refusal) and isinstance(delta_rs, Refusal)
    if we == spark and (delta_rs == spark or both_refuse):
        return None
    rows = [item for item in (spark, we, delta_rs) if isinstance(item, Rows)]
    most = max(rows, key=rows.count, default=None)
    return Difference(asked, *(worded(item, most) for item in (we, spark, delta_rs)))


def worded(one, most):
    """An answer in a word: "rows" are those that most readers give, and of several Spark's."""
    if isinstance(one, Refusal):
        return f"refuses: {one.kind}"
    return "rows" if one == most else "other rows"
