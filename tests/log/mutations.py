"""Values and bytes changed at random places, by a seed."""

import copy
import random

ODD = [
    *(
        None,
        True,
        False,
        0,
        -1,
        5,
        2**63,
        2**70,
        1.5,
        1e400,
        float("nan"),
        "",
        "5",
        "\ud800",
        "\x00",
        "..",
        "/../x",
    ),
    *(
        "x" * 50,
        [],
        [1],
        {},
        {"a": 1},
        [[]],
        {"a": {"b": None}},
        "+10000-01-01",
        "2024-13-45",
        "s3://a/b",
        "NaN",
    ),
]


class Mutations:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, value):
        """A copy of a JSON value with one to three of its parts replaced, taken away or added."""
        value = copy.deepcopy(value)
        places = list(self._places(value, ()))
        for place in self.random.choices(places, k=self.random.choice([1, 1, 2, 3])) if places else ():
            self._change(value, place)
        return value

    def bytes(self, content):
        """The bytes with a few of them changed, lost or doubled, or with very deep nesting."""
        found = bytearray(content)
        for _ in range(self.random.choice([1, 1, 2, 4])):
            at = self.random.randrange(len(found) + 1)
            kind = self.random.random()
            if kind < 0.5 and at < len(found):
                found[at] = self.random.randrange(256)
            elif kind < 0.7:
                del found[at : at + self.random.randrange(1, 9)]
            elif kind < 0.9:
                found[at:at] = self.random.randbytes(3)
            elif kind < 0.95:
                del found[at:]
            else:
                found[at:at] = self.random.choice([b"[", b'{"a":']) * 20_000
        return bytes(found)

    def _places(self, value, inside):
        parts = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, one in parts:
            yield (*inside, key)
            yield from self._places(one, (*inside, key))

    def _change(self, value, place):
        try:
            for key in place[:-1]:
                value = value[key]
            odd = copy.deepcopy(self.random.choice(ODD))
            kind = self.random.random()
            if kind < 0.15:
                del value[place[-1]]
            elif kind < 0.25 and isinstance(value, dict):
                value[self.random.choice(["zz", "\ud800", "a.b", ".p", "path"])] = odd
            else:
                value[place[-1]] = odd
        except (KeyError, TypeError, IndexError):
            pass  # an earlier change took the place away
