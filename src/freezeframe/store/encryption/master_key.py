"""The master key, which wraps the data keys of tenants.

It comes from a file that only its owner may read, or from a command (a vault's client, for
example); both give 32 random bytes, raw or as hex or base64 text. It is never stored by us.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import shlex
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from freezeframe.errors import SealingUnavailable
from freezeframe.settings import Settings
from freezeframe.storage.passing_failures import reads_of

KEY_BYTES = 32
_COMMAND_SECONDS_MAX = 30
_FILE_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class MasterKey:
    """32 secret bytes, never part of a message; ``fingerprint`` identifies a key without revealing it."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise _unavailable(
                "The master key cannot be used.", f"It has {len(self.secret)} bytes instead of {KEY_BYTES}."
            )

    @property
    def fingerprint(self) -> str:
        """16 hex digits that identify the key."""
        return hashlib.sha256(b"freezeframe master key\0" + self.secret).hexdigest()[:16]


def master_key(settings: Settings) -> MasterKey:
    """The master key configured in the settings."""
    if settings.master_key_file is not None and settings.master_key_command:
        raise _unavailable(
            "There are two master keys.", "Both master_key_file and master_key_command are set."
        )
    if settings.master_key_file is not None:
        return read_master_key(settings.master_key_file)
    if settings.master_key_command:
        return MasterKey(_decode(_answer(settings.master_key_command)))
    raise _unavailable("Nothing can be sealed here.", "No master key is set.")


def accepted_master_keys(settings: Settings) -> tuple[MasterKey, ...]:
    """The master key, and the second one that is accepted during a rotation."""
    other = settings.master_key_file_other
    return (master_key(settings), *(() if other is None else (read_master_key(other),)))


def read_master_key(path: Path) -> MasterKey:
    """The master key in a file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _unavailable("The master key cannot be read.", str(error)) from error
    try:
        # The check uses the open file, so that it applies to the bytes read.
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _unavailable("The master key cannot be read.", f"{path} is not a plain file.")
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SealingUnavailable(
                "The master key is not used, because it may not be secret.",
                cause=f"{path} has the mode {stat.S_IMODE(status.st_mode):04o}: it is not its owner's alone.",
                remedy=f"Make it its owner's alone: chmod 600 {path}.",
            )
        with reads_of(str(path)):
            return MasterKey(_decode(os.read(handle, _FILE_BYTES_MAX)))
    finally:
        os.close(handle)


def _answer(command: str) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 - the operator's own command, without a shell
            shlex.split(command), capture_output=True, check=True, timeout=_COMMAND_SECONDS_MAX
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        # The command's output may hold the key, so the message has only its exit status.
        raise _unavailable("The master key's command failed.", type(error).__name__) from None
    return done.stdout


def _decode(content: bytes) -> bytes:
    if len(content) == KEY_BYTES:
        return content
    text = content.strip()
    try:
        if len(text) == KEY_BYTES * 2:
            return bytes.fromhex(text.decode("ascii"))
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise _unavailable(
            "The master key cannot be used.", "It is neither raw nor hex nor base64."
        ) from None


def _unavailable(problem: str, cause: str) -> SealingUnavailable:
    return SealingUnavailable(
        problem,
        cause=cause,
        remedy="Set FREEZEFRAME_MASTER_KEY_FILE to a file of mode 0600 with 32 random bytes "
        "(openssl rand -base64 32), or FREEZEFRAME_MASTER_KEY_COMMAND to a command that prints them.",
    )
