"""The wire protocol of client and runner: length-prefixed JSON, and file descriptors.

Both ends run as the same user on the same machine; each checks the user of the other end with the system.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_LENGTH = struct.Struct(">I")
_CREDENTIALS = struct.Struct("3i")
_BYTES_MAX = 64 * 1024 * 1024
_DESCRIPTORS_MAX = 8

Message = Mapping[str, Any]


class ConnectionLost(OSError):
    """The peer is gone, or is not a runner of this user."""


def send(connection: socket.socket, message: Message, descriptors: Sequence[int] = ()) -> None:
    """Send a message, with open files for the other process."""
    body = json.dumps(message).encode()
    head = _LENGTH.pack(len(body))
    if descriptors:
        socket.send_fds(connection, [head], list(descriptors))
    else:
        connection.sendall(head)
    connection.sendall(body)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the next message and the files that came with it, which are the caller's to close."""
    head, descriptors, _, _ = socket.recv_fds(connection, _LENGTH.size, _DESCRIPTORS_MAX)
    try:
        head += _exactly(connection, _LENGTH.size - len(head))
        (length,) = _LENGTH.unpack(head)
        if length > _BYTES_MAX:
            raise ConnectionLost(f"a message of {length} bytes")
        message = json.loads(_exactly(connection, length))
        if not isinstance(message, dict):
            raise ConnectionLost("a message that is not an object")
    except (OSError, ValueError) as error:
        for descriptor in descriptors:
            os.close(descriptor)
        if isinstance(error, ValueError):
            raise ConnectionLost("a message that is not JSON") from error
        raise
    return message, descriptors


def _exactly(connection: socket.socket, length: int) -> bytes:
    content = b""
    while len(content) < length:
        more = connection.recv(length - len(content))
        if not more:
            raise ConnectionLost("the other end is gone")
        content += more
    return content


def require_own_user(connection: socket.socket) -> None:
    """Check that the process at the other end is this user's, as the system knows it."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(credentials)
    if user != os.getuid():
        raise ConnectionLost(f"the other end belongs to user {user}")


_LIMITS = tuple(name for name in dir(resource) if name.startswith("RLIMIT_"))


@dataclass(frozen=True, slots=True)
class Work:
    """A request to the runner: a module with its arguments and the state of the process.

    Bound to its client, the process is killed with all of its group when the client is no more.
    """

    module: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    umask: int
    limits: Mapping[str, Sequence[int]]
    is_bound: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the work as a message."""
        return {
            "module": self.module,
            "arguments": list(self.arguments),
            "environment": dict(self.environment),
            "umask": self.umask,
            "limits": {name: list(pair) for name, pair in self.limits.items()},
            "is_bound": self.is_bound,
        }


def parse_work(message: Mapping[str, Any]) -> Work:
    """Return the work that a message describes."""
    try:
        return Work(
            module=str(message["module"]),
            arguments=tuple(map(str, message["arguments"])),
            environment={str(name): str(value) for name, value in message["environment"].items()},
            umask=int(message["umask"]),
            limits={str(name): (int(pair[0]), int(pair[1])) for name, pair in message["limits"].items()},
            is_bound=bool(message["is_bound"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ConnectionLost("a message that asks for nothing known") from error


def current_limits() -> dict[str, tuple[int, int]]:
    """Return the resource limits of this process, which a child of it would have."""
    return {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS}
