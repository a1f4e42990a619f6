"""``freezeframe.open``: a directory or a bucket becomes a ``Store`` with storage and engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from freezeframe.errors import InvalidOption
from freezeframe.script.tenant.tenants import shared_engine
from freezeframe.settings import Settings, load_settings
from freezeframe.storage import LocalStorage, Storage, open_bucket
from freezeframe.storage.location import S3Access
from freezeframe.storage.probe import require_remembered
from freezeframe.store.model.directory import OURS
from freezeframe.store.snapshot_store import Store

_SCHEMES = ("s3", "s3a")


def open(  # noqa: A001 - freezeframe.open
    root: str | os.PathLike[str],
    environment: str = "default",
    *,
    engine: Literal["spark", "auto"] | None = None,
) -> Store:
    """Open the store at ``root``: a directory, which need not exist yet, or ``s3://bucket/prefix``.

    ``environment`` is whose tenants are seen: the same id in two environments is two tenants. The
    bucket's credentials and endpoint come from the settings ``s3_…`` or the usual ``AWS_…`` variables.
    ``engine`` is who searches and merges stored rows (see the setting of that name, which counts without it).

    Raises:
        InvalidOption: ``root`` is a file, a URL of another kind, or one tenant's own directory; or there is
            no such engine.
        InvalidName: no environment can have that name.
        FormatTooNew: a newer freezeframe wrote it.
        StorageUnsuitable: the bucket's store has no atomic create, as was seen.
    """
    settings = load_settings(engine=engine)
    return Store(storage_at(os.fspath(root), settings), shared_engine(), settings, environment)


def storage_at(root: str, settings: Settings, *, is_asked_again: bool = False) -> Storage:
    """The storage at a store's root; errors as of ``open``.

    A bucket is put to the test at first contact; ``is_asked_again`` does it anew.
    """
    scheme, separator, rest = root.partition("://")
    if separator:
        if scheme not in _SCHEMES or not rest.strip("/"):
            raise InvalidOption(
                f"{root!r} is not a place for a store.", remedy="Pass a directory, or s3://bucket/prefix."
            )
        access = S3Access.of(settings, os.environ)
        storage = open_bucket(
            f"s3://{rest}",
            is_trusted=settings.s3_conditional_writes == "trusted",
            **access.obstore_options(),
        )
        memory = settings.state_dir / "probed" / access.place
        require_remembered(storage, OURS, memory, is_asked_again=is_asked_again)
        return storage
    path = Path(root).resolve()
    if not root or (path.exists() and not path.is_dir()):
        raise InvalidOption(
            f"{root!r} is not a directory.", remedy="Pass the path of a directory, or s3://bucket/prefix."
        )
    return LocalStorage(path)
