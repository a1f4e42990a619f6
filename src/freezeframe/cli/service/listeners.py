"""Listening sockets of a service's processes, one each, among which the kernel balances.

Where all accept from one socket, the first to wake takes every connection that waits. Connections are
kept, so one process did all the work while the others had none, and requests took ten times as long.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from pathlib import Path

BACKLOG = 2048
# macOS gives all connections of such a group to one of its sockets.
_IS_SHARED_OUT = sys.platform == "linux"
_claims: list[int] = []


class Listeners(list[socket.socket]):
    """Listening sockets of one address; a process that is started with them keeps one that nobody has."""

    def __init__(self, address: tuple[str, int], family: int, count: int, claims: str) -> None:
        """``claims`` is a folder of this service alone, in which processes note which socket is whose.

        Raises:
            OSError: the address is taken.
        """
        sockets = [_bind(address, family) for _ in range(count if _IS_SHARED_OUT else 1)]
        super().__init__(sockets)
        for one in sockets:
            one.listen(BACKLOG)  # from now on, requests wait for a process and are not refused
        self._folder = claims

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled for the process that is started; there it is the list of the one socket that it claimed."""
        return claim_socket, (list(self), self._folder)


def claim_socket(sockets: list[socket.socket], folder: str) -> list[socket.socket]:
    """The first socket that no living process has claimed, held as long as this one lives.

    Who starts while each of them is claimed, as when processes are replaced one by one, gets all of them:
    whichever is given up, somebody listens there.
    """
    free = (number for number in range(len(sockets)) if _is_claimed_now(Path(folder, f"listener-{number}")))
    mine = next(free, None)
    if mine is None:
        return sockets
    for number, one in enumerate(sockets):
        if number != mine:
            one.close()
    return [sockets[mine]]


def _is_claimed_now(path: Path) -> bool:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return False
    _claims.append(handle)
    return True


def _bind(address: tuple[str, int], family: int) -> socket.socket:
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if _IS_SHARED_OUT:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made
