"""Every setting of the library, with its meaning, its default and where it may be set.

A value comes from the environment (``FREEZEFRAME_…``) or from its default. Nothing is read
at import time: the composition root builds one ``Settings`` and hands it down.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What can be set. Frozen: a running job never changes its mind."""

    model_config = SettingsConfigDict(env_prefix="FREEZEFRAME_", frozen=True, extra="ignore")

    spark: str = Field(
        default="auto",
        description="Where Spark is: `auto` (a warm local server, started on demand), `local` (in this "
        "process), `sc://host:port` (a Spark Connect server) or `spark://host:port` (a cluster).",
    )
    spark_memory: str = Field(default="4g", description="Memory of the warm local server's JVM.")
    spark_idle_seconds: int = Field(
        default=1800, ge=1, description="The warm local server stops after this long without a job."
    )
    spark_start_seconds: int = Field(
        default=120, ge=1, description="How long the start of the warm local server may take."
    )
    state_dir: Path = Field(
        default_factory=lambda: Path.home() / ".cache" / "freezeframe",
        description="Where the warm server keeps its address, token and log (mode 0700).",
    )
    staleness_limit_ms: int = Field(
        default=0,
        ge=0,
        description="How old a table's state may be when a reader accepts a stale one "
        "(Spark's `spark.databricks.delta.stalenessLimit`).",
    )
    commit_tries_max: int = Field(
        default=20, ge=1, description="How often a job is re-based on others' commits before ConflictError."
    )
    vectors_from_bytes: int = Field(
        default=2 * 1024 * 1024,
        ge=0,
        description="From this many bytes on, an update of a stream marks changed rows as deleted "
        "(deletion vectors, Delta reader version 3) instead of rewriting its files.",
    )
    compatibility: Literal["auto", "plain"] = Field(
        default="auto",
        description="`plain` never uses deletion vectors: touched files are rewritten, and every "
        "Delta reader can read the streams.",
    )
    export_adopted_files: bool = Field(
        default=True,
        description="A `{stream}.snapshot.csv` or `.parquet` that a stream has adopted is written again "
        "after each update by a script, for other scripts that open it; that costs a write of the "
        "whole content.",
    )
    checkpoint_interval: int = Field(
        default=10, ge=1, description="A checkpoint is written every so many versions."
    )
    job_id_days: int = Field(
        default=30, ge=1, description="How long the ids of committed jobs are remembered, in days."
    )
    lease_heartbeat_seconds: float = Field(
        default=20.0, gt=0, description="How often a job that is under way says that it is alive."
    )
    lease_dead_seconds: float = Field(
        default=900.0,
        ge=0,
        description="A job that has not said so for this long may be declared dead by `gc`; it can not be "
        "committed then.",
    )
    gc_grace_seconds: float = Field(
        default=3600.0,
        ge=0,
        description="How long `gc` waits between declaring something garbage and deleting it: longer than "
        "any read takes.",
    )
    master_key_file: Path | None = Field(
        default=None,
        description="A file of mode 0600 with the master key for sealed files: 32 random bytes, raw, as hex "
        "or as base64.",
    )
    master_key_command: str = Field(
        default="",
        description="A command that prints the master key, in the place of a file (run without a shell).",
    )
