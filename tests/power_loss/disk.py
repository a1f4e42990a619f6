"""A disk as a power loss finds it: what was synced, and what may be there, or half there, or not at all.

The model is POSIX's, which allows more than ext4 does. The bytes of a file are safe after its ``fsync``; of
those written since, each sector may be there or not, and the file may be longer already with zeros in it. A
name is safe after the ``fsync`` of its folder; of the changes of names since, each may be there or not, a
rename whole or not.
"""

import os
from dataclasses import dataclass, field

SECTOR = 512
MODES = ("lost", "kept", "ordered", "any")


@dataclass(eq=False)
class File:
    """Its safe bytes, and what was done since: bytes at an offset, or a new size."""

    safe: bytes = b""
    since: list = field(default_factory=list)
    size: int = 0

    def write(self, offset, data):
        self.since.append((offset, data))
        self.size = max(self.size, offset + len(data))

    def resize(self, size):
        self.since.append((size, None))
        self.size = size

    def sync(self):
        self.safe, self.since = self.after(lambda _: "kept"), []

    def after(self, choose):
        content = bytearray(self.safe)
        for offset, data in self.since:
            fate = choose(data)
            if fate == "lost":
                continue
            if data is None:
                del content[offset:]
                content.extend(bytes(offset - len(content)))
                continue
            content.extend(bytes(max(0, offset + len(data) - len(content))))
            if fate == "kept":
                content[offset : offset + len(data)] = data
                continue
            for start in fate(offset):  # the sectors that reached the disk
                low, high = max(start, offset), min(start + SECTOR, offset + len(data))
                content[low:high] = data[low - offset : high - offset]
        return bytes(content)


@dataclass(eq=False)
class Folder:
    """Its safe names, and those of now."""

    safe: dict = field(default_factory=dict)
    now: dict = field(default_factory=dict)


class Disk:
    """What the calls of a recording make of an empty folder."""

    def __init__(self, root, *, obeys_fsync=True):
        self.root = str(root)
        self.top = Folder()
        self.since = []  # changes of names that are not safe: tuples of (folder, name, what or None)
        self.open = {}
        self.obeys_fsync = obeys_fsync

    def apply(self, call):
        """Whether the call changed what a power loss may leave."""
        kind = getattr(self, f"_{call.name}", None)
        if kind is None:
            assert not any(self._is_here(path) for path in call.paths), (
                f"{call.name} is not known to the model"
            )
            return False
        return kind(call) is not False

    def _is_here(self, path):
        return path == self.root or path.startswith(f"{self.root}/")

    def _find(self, path):
        """The folder and the name of a path, or None if it is elsewhere."""
        if not self._is_here(path):
            return None
        folder, parts = self.top, os.path.normpath(path)[len(self.root) :].strip("/").split("/")
        for part in parts[:-1]:
            folder = folder.now[part]
        return folder, parts[-1]

    def _node(self, path):
        found = self._find(path)
        if found is None:
            return None
        return found[0].now.get(found[1]) if found[1] else self.top

    def _change(self, *changes):
        for folder, name, what in changes:
            if what is None:
                folder.now.pop(name, None)
            else:
                folder.now[name] = what
        self.since.append(changes)

    def _openat(self, call):
        path = call.paths[0]
        self.open.pop(call.answer, None)
        if not self._is_here(path):
            return False
        node, changed = self._node(path), False
        if node is None and "O_TMPFILE" not in call.flags:
            folder, name = self._find(path)
            node, changed = File(), True
            self._change((folder, name, node))
        if "O_TRUNC" in call.flags and node.size:
            node.resize(0)
            changed = True
        self.open[call.answer] = [node, 0, "O_APPEND" in call.flags]
        return changed

    _open = _openat2 = _creat = _openat

    def _dup(self, call):
        self.open.pop(call.answer, None)
        if call.descriptors[0] in self.open:
            self.open[call.answer] = self.open[call.descriptors[0]]
        return False

    _dup2 = _dup3 = _dup

    def _lseek(self, call):
        if call.descriptors[0] in self.open:
            self.open[call.descriptors[0]][1] = call.answer
        return False

    def _opened(self, call):
        """The open file, if it is one of ours; a number may have been closed and given anew elsewhere."""
        return self.open.get(call.descriptors[0]) if self._is_here(call.paths[0]) else None

    def _write(self, call):
        opened = self._opened(call)
        if opened is None:
            return False
        node, position, appends = opened
        offset = node.size if appends else position
        node.write(offset, call.data[: call.answer])
        opened[1] = offset + call.answer
        return True

    _writev = _write

    def _pwrite64(self, call):
        opened = self._opened(call)
        if opened is None:
            return False
        opened[0].write(call.number, call.data[: call.answer])
        return True

    _pwritev = _pwrite64

    def _ftruncate(self, call):
        opened = self._opened(call)
        if opened is None:
            return False
        opened[0].resize(call.number)
        return True

    def _mkdir(self, call):
        found = self._find(call.paths[0])
        if found is None:
            return False
        self._change((*found, Folder()))
        return True

    _mkdirat = _mkdir

    def _unlink(self, call):
        found = self._find(call.paths[0])
        if found is None:
            return False
        self._change((*found, None))
        return True

    _unlinkat = _rmdir = _unlink

    def _link(self, call):
        old, new = call.paths
        if not self._is_here(new):
            return False
        self._change((*self._find(new), self._node(old)))
        return True

    _linkat = _link

    def _rename(self, call):
        old, new = map(self._find, call.paths)
        if old is None:
            return False
        self._change((*new, self._node(call.paths[0])), (*old, None))
        return True

    _renameat = _renameat2 = _rename

    def _fsync(self, call):
        opened = self._opened(call)
        if opened is None or not self.obeys_fsync:
            return False
        node = opened[0]
        if isinstance(node, File):
            node.sync()
            return True
        safe, places = [], set()
        for changes in reversed(self.since):  # an earlier change of a name goes before a later one
            mine = {(folder, name) for folder, name, _ in changes}
            if mine & places or any(folder is node for folder, _ in mine):
                safe.insert(0, changes)
                places |= mine
        self.since = [changes for changes in self.since if changes not in safe]
        for changes in safe:
            for folder, name, what in changes:
                _set(folder.safe, name, what)
        return True

    _fdatasync = _fsync

    def after_power_loss(self, random, mode):
        """What is found then, one of the states that may be: paths with their bytes; None is a folder."""
        names = {}
        for changes in self._changes_that_stay(random, mode):
            for folder, name, what in changes:
                _set(names.setdefault(folder, dict(folder.safe)), name, what)
        found, contents = {}, {}
        pending = [("", self.top)]
        while pending:
            path, node = pending.pop()
            if isinstance(node, Folder):
                found[path] = None
                pending += [(f"{path}/{name}", one) for name, one in names.get(node, node.safe).items()]
                continue
            if node not in contents:  # two names of one file
                contents[node] = node.safe if not node.since else node.after(_choice(random, mode))
            found[path] = contents[node]
        return found

    def _changes_that_stay(self, random, mode):
        if mode == "lost":
            return []
        if mode == "kept":
            return self.since
        if mode == "ordered":
            return self.since[: random.randint(0, len(self.since))]
        return [changes for changes in self.since if random.random() < 0.5]


def _set(names, name, what):
    if what is None:
        names.pop(name, None)
    else:
        names[name] = what


def _choice(random, mode):
    def choose(data):
        if mode in ("lost", "kept"):
            return mode
        fate = random.choice(("lost", "kept", "torn", "zeros"))
        if fate in ("lost", "kept") or data is None:
            return "kept" if fate == "kept" else "lost"
        chance = 0.5 if fate == "torn" else 0.0  # without any sector the file is longer, with zeros in it
        return lambda offset: [
            item
            for item in range(offset // SECTOR * SECTOR, offset + len(data), SECTOR)
            if random.random() < chance
        ]

    return choose
