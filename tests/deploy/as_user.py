"""Runs a command as a user without rights, in mounts of its own: UID STORE OWNER PLACES COMMAND ...

In these mounts everybody may reach ``PLACES`` (separated by colons: Python, the repository), wherever they
lie, and the store, whose files are ``OWNER``'s, is the user's own: the idmapped mount of ``deploy/``, at its
own path.
"""

import ctypes
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

_C = ctypes.CDLL(None, use_errno=True)
_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same numbers on each architecture
_HERE, _CLONE, _RECURSIVE, _EMPTY_PATH, _IDMAP = -100, 0x1, 0x8000, 0x1000, 0x00100000


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "namespace")]


def _checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def show(places):
    """Cover each folder above that others may not enter by one that holds these places alone."""
    hold = Path(tempfile.mkdtemp())
    closed = {above for one in places for above in one.parents if not above.stat().st_mode & stat.S_IXOTH}
    for number, place in enumerate(places):
        (hold / str(number)).mkdir()
        _mount("--bind", place, hold / str(number))
    for above in sorted(closed):
        if above.exists():
            _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", above)
    for number, place in enumerate(places):
        place.mkdir(parents=True, exist_ok=True)
        _mount("--move", hold / str(number), place)


def own(store, owner, user):
    """Lay an idmapped mount over the store: what is the owner's is the user's here."""
    (ready, is_ready), (over, is_over) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(is_over)
        _checked(_C.unshare(_NEW_USERS))
        os.write(is_ready, b"1")
        os.read(over, 1)
        os._exit(0)
    os.read(ready, 1)
    for kind in ("uid_map", "gid_map"):
        Path(f"/proc/{child}/{kind}").write_text(f"{owner} {user} 1\n")
    namespace = os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    tree = _checked(_C.syscall(_OPEN_TREE, _HERE, os.fsencode(store), _CLONE | _RECURSIVE | os.O_CLOEXEC))
    wanted = _Attributes(_IDMAP, 0, 0, namespace)
    size = ctypes.sizeof(wanted)
    _checked(_C.syscall(_MOUNT_SETATTR, tree, b"", _EMPTY_PATH | _RECURSIVE, ctypes.byref(wanted), size))
    _checked(_C.syscall(_MOVE_MOUNT, tree, b"", _HERE, os.fsencode(store), 4))
    os.close(is_over)
    os.waitpid(child, 0)


def main(user, store, owner, places, *command):
    """Be the user, and the command."""
    _checked(_C.unshare(_NEW_MOUNTS))
    _mount("--make-rprivate", "/")
    show([Path(one) for one in places.split(":")])
    if user != owner:
        own(store, int(owner), int(user))
    os.setgroups([])
    os.setresgid(*[int(user)] * 3)
    os.setresuid(*[int(user)] * 3)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
