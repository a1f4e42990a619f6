"""Every setting of the library, with its meaning, its default and where it may be set.

A value comes from a flag, the environment (``FREEZEFRAME_…``), the project's ``freezeframe.toml``, the
user's own, or its default; the first that has one wins. Nothing is read at import time: the composition
root loads the settings and hands them down.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from freezeframe.configuration.layers import Resolved, resolve
from freezeframe.configuration.masking import masked_value


class Settings(BaseSettings):
    """All settings. Frozen, so that a running job's settings never change."""

    model_config = SettingsConfigDict(
        env_prefix="FREEZEFRAME_",
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,  # an empty variable counts as unset
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the names are Pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take arguments and variables; ``configuration`` reads the files, and no other source is used."""
        return init_settings, env_settings

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Fields of ``repr``: no secrets, and URLs without passwords."""
        found = super().__repr_args__()
        return [
            (name, value if name is None else masked_value(type(self), name, value)) for name, value in found
        ]

    root: str = Field(
        default="freezeframe-data",
        description="The store, unless `--root` names another: a directory, or `s3://bucket/prefix`. In a "
        "file a relative path starts at the file's folder.",
        json_schema_extra={"place": True},
    )
    environment: str = Field(
        default="default", description="The environment of the store, unless `--env` names another."
    )
    tenant: str = Field(
        default="",
        description="The tenant, unless `--tenant` or `--dir` names one.",
    )
    dtype_backend: Literal["numpy", "numpy_nullable", "pyarrow"] = Field(
        default="numpy",
        description="The types of columns of pandas frames, as pandas' option of this name; `numpy` gives "
        "pandas' ordinary types.",
    )
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
        default=120,
        ge=1,
        description="How long the start of the warm local server may take, without jars that it fetches.",
    )
    spark_python: str = Field(
        default="",
        description="The Python with which Spark's workers run a script's own functions. Without it, on this "
        "machine: PYSPARK_PYTHON, or the Python that runs the job, with its packages.",
    )
    spark_jars_dir: Path | None = Field(
        default=None,
        description="A folder of jars that the warm server starts with, such as those of an image with which "
        "Spark reaches `s3://`; without it Spark fetches them where the store is in a bucket.",
    )
    s3_endpoint: str = Field(
        default="",
        description="The address of an object store that speaks S3, such as `https://minio.example.com`; "
        "without it `AWS_ENDPOINT_URL`, or Amazon's own.",
    )
    s3_region: str = Field(
        default="", description="The region of the buckets; without it `AWS_REGION`, or us-east-1."
    )
    s3_path_style: Literal["auto", "yes", "no"] = Field(
        default="auto",
        description="Whether a bucket is named in the path and not in the host's name; `auto`: where an "
        "endpoint is set.",
    )
    s3_conditional_writes: Literal["probe", "trusted"] = Field(
        default="probe",
        description="How conditional writes (`If-None-Match: *`), on which all commits depend, are tested: "
        "`probe` tests a store other than Amazon's with 132 races when it is first used; "
        "`trusted` tests it with two.",
    )
    s3_access_key_id: str = Field(
        default="",
        description="The id of an access key; without it `AWS_ACCESS_KEY_ID`, or the role of the machine "
        "or pod.",
        json_schema_extra={"secret": True},
    )
    s3_secret_access_key: str = Field(
        default="",
        description="The access key's secret; without it `AWS_SECRET_ACCESS_KEY`.",
        json_schema_extra={"secret": True},
    )
    s3_session_token: str = Field(
        default="",
        description="The token that belongs to a temporary access key; without it `AWS_SESSION_TOKEN`.",
        json_schema_extra={"secret": True},
    )
    runner_idle_seconds: int = Field(
        default=1800,
        ge=0,
        description="The warm runner, a Python process from which those of jobs are forked, stops after this "
        "long without a job; 0: each job starts a Python of its own.",
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
        default=20,
        ge=1,
        description="How often a commit is retried after commits of other jobs, before it fails with "
        "ConflictError.",
    )
    vectors_from_bytes: int = Field(
        default=2 * 1024 * 1024,
        ge=0,
        description="From this many bytes on, an update of a stream marks changed rows as deleted "
        "(deletion vectors, Delta reader version 3) instead of rewriting its files.",
    )
    engine: Literal["spark", "auto"] = Field(
        default="spark",
        description="`spark`: Spark searches and merges every update that meets stored rows. `auto`: this "
        "process does, for up to `searched_rows_max` stored rows, and Spark finds the rows of windows.",
    )
    searched_rows_max: int = Field(
        default=25_000_000,
        ge=0,
        description="With `engine=auto`: this process searches and merges up to this many rows, counted in "
        "the files that can contain a key of the batch; Spark does with more.",
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
    held_days: float = Field(
        default=7.0,
        gt=0,
        description="How long a held job can be published, in days; `gc` then removes what it staged.",
    )
    job_root_days: float = Field(
        default=14.0,
        gt=0,
        description="How long the folder that a run's script worked in is kept: its output, log and executed "
        "notebook.",
    )
    keep_inputs_days: int = Field(
        default=0,
        ge=0,
        le=3650,
        description="How long the input of a job is kept, for `job pull` and `job replay`, in days: what the "
        "sync left, parameters, and the script with what lies beside it; 0: it is not kept.",
    )
    script_variables: str = Field(
        default="",
        description="Variables of the environment that scripts get in addition to those of the job, separated"
        " by commas; otherwise they get only what programs need to run.",
    )
    lease_heartbeat_seconds: float = Field(
        default=20.0, gt=0, description="How often a running job sends a heartbeat."
    )
    lease_dead_seconds: float = Field(
        default=900.0,
        ge=0,
        description="`gc` declares a job dead if it sent no heartbeat for this long; it cannot be committed "
        "then.",
    )
    gc_grace_seconds: float = Field(
        default=3600.0,
        ge=0,
        description="How long `gc` waits between expiring a version and deleting its files; it must be longer"
        " than any read takes.",
    )
    keep_versions: int = Field(
        default=1000,
        ge=0,
        description="How many versions a new tenant keeps, unless `tenant retention` sets another rule; 0: "
        "all. Existing tenants are not affected.",
    )
    gc_automatic: bool = Field(
        default=True,
        description="Whether jobs delete expired versions, as `gc` does: after every 32nd version, for "
        "tenants with up to 50,000 files.",
    )
    master_key_file: Path | None = Field(
        default=None,
        description="A file of mode 0600 with the master key for sealed files: 32 random bytes, raw, as hex "
        "or as base64.",
    )
    master_key_file_other: Path | None = Field(
        default=None,
        description="A second master key that opens sealed files during a rotation: the next one or "
        "the one before.",
    )
    master_key_command: str = Field(
        default="",
        description="A command that prints the master key, in the place of a file (run without a shell).",
        json_schema_extra={"secret": True},
    )
    database_url: str = Field(
        default="",
        description="The control database of jobs, schedules and keys: `sqlite:///path` or "
        "`postgresql://user:password@host/name`; without it a file in the store's own directory.",
        json_schema_extra={"secret": True},
    )
    jobs_per_tenant_max: int = Field(
        default=1, ge=1, le=1000, description="How many queued jobs of one tenant may run at once."
    )
    job_lease_seconds: float = Field(
        default=30.0,
        gt=0,
        description="If a worker sent no heartbeat for this long, another worker takes its job over.",
    )
    job_beat_seconds: float = Field(
        default=10.0,
        gt=0,
        description="How often a worker sends a heartbeat for a job; at most half of `job_lease_seconds`.",
    )
    service_secret_file: Path | None = Field(
        default=None,
        description="A file of mode 0600 with at least 32 random bytes, the same for all workers of a "
        "service: it signs cursors, sign-ins and the audit. Without it, one is made "
        "in the store's own directory.",
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="How the service and workers write their log to standard error."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning",
        description="The lowest level that they log; `info` has a line for each request and job. With `debug`"
        " the traceback of a script that a call of this package refused has the package's own "
        "frames as well.",
    )
    notify_url: str = Field(
        default="",
        description="Where a worker posts each job that ended without success or is held, as JSON: "
        "`https://host/path`.",
        json_schema_extra={"secret": True},
    )
    service_requests_per_second: float = Field(
        default=100.0,
        ge=0,
        description="How many requests a second a process accepts from one key or person, with a burst of ten"
        " seconds' worth; further requests get 429. 0 means no limit.",
    )
    service_requests_at_once_per_principal: int = Field(
        default=20,
        ge=0,
        description="How many requests of one key or person a process executes at once, of 40 in all; ten "
        "times as many wait, further requests get 429. 0 means no limit.",
    )
    service_tenant_stored_bytes_max: int = Field(
        default=1024**4,
        ge=0,
        description="How many bytes the newest version of a tenant may hold, streams and files together, "
        "with staged blobs and the inputs of queued imports: a request that would bring more is 413; 0 "
        "is no limit. Jobs are not stopped.",
    )
    service_tenant_jobs_queued_max: int = Field(
        default=1000,
        ge=0,
        description="How many jobs of one tenant may wait in the queue before the service takes no more "
        "(429); those of schedules and of the command count, and are not refused. 0 is no limit.",
    )
    service_tenant_uploads_max: int = Field(
        default=2000,
        ge=0,
        description="How many staged blobs of one tenant may wait, with the inputs of queued imports, "
        "before the service takes no more (429); 0 is no limit.",
    )
    service_streams_max: int = Field(
        default=500,
        ge=1,
        description="How many logs and streams of events a process sends at once.",
    )
    service_streams_per_principal_max: int = Field(
        default=25,
        ge=1,
        description="How many logs and streams of events a process sends to one key or person at once.",
    )
    service_body_bytes_max: int = Field(
        default=64 * 1024 * 1024,
        ge=1024,
        description="The largest body that the service takes at once, in bytes; larger files are "
        "staged as blobs.",
    )
    service_upload_bytes_max: int = Field(
        default=5 * 1024**3, ge=1024, description="The largest staged blob, in bytes."
    )
    service_upload_hours: float = Field(
        default=24.0,
        gt=0,
        description="How long a staged blob waits for the request that publishes it, in hours.",
    )
    service_override_bytes_max: int = Field(
        default=16 * 1024 * 1024,
        ge=1024,
        description="The largest `{stream}.snapshot.csv` or `.parquet` that replaces a stream's content "
        "within the request, in bytes; more is imported as a job.",
    )
    unpacked_rows_max: int = Field(
        default=100_000_000,
        ge=1,
        description="How many rows a file that comes from outside may hold (an import of the service, its "
        "preview, a replaced stream); more is 413, before they are read where the file says so.",
    )
    unpacked_bytes_max: int = Field(
        default=64 * 1024**3,
        ge=1,
        description="How many bytes such a file may unpack to; within a request 256 MiB at most.",
    )
    unpacked_ratio_max: float = Field(
        default=200.0,
        ge=1,
        description="How many times its own size such a file may unpack to, from 64 MiB on.",
    )
    service_requires_conditions: bool = Field(
        default=False,
        description="Whether a change of an existing file or stream needs `If-Match` (428 without it).",
    )
    service_requires_reasons: bool = Field(
        default=False,
        description="Whether what a person changes in the console needs a reason, for the history.",
    )
    service_scripts_dir: Path | None = Field(
        default=None,
        description="The folder of the scripts that jobs of the service may run; without it only "
        "imports run. A worker that has it set runs no job of a script outside of it.",
    )
    service_session_hours: float = Field(
        default=12.0, gt=0, description="How long a session of the console lasts, in hours."
    )
    service_url: str = Field(
        default="",
        description="The address that browsers know the service by, for example "
        "`https://snapshots.example.org`; without it the one that a request was sent to.",
    )
    service_oidc_issuer: str = Field(
        default="",
        description="The OpenID Connect provider whose accounts may sign in: its issuer, an https URL as its "
        "discovery document has it. Without it people sign in with a key.",
    )
    service_oidc_client_id: str = Field(
        default="", description="The client id that the provider has for the service."
    )
    service_oidc_client_secret: str = Field(
        default="",
        description="The client's secret at the provider; a public client has none.",
        json_schema_extra={"secret": True},
    )
    service_oidc_client_secret_file: Path | None = Field(
        default=None, description="A file with the client's secret, in place of the setting."
    )
    service_oidc_name: str = Field(
        default="", description="What the sign-in page calls the provider; its host's name without it."
    )
    service_oidc_scopes: str = Field(
        default="openid profile email", description="The scopes to request from the provider."
    )
    service_oidc_role_claim: str = Field(
        default="roles",
        description="The claim of the ID token with a person's roles or groups: a text or a list, also in a "
        "member of a member (`realm_access.roles`).",
    )
    service_oidc_roles: str = Field(
        default="",
        description="What the claim's values mean here: `ops-team=admin, support=viewer`. Without it they "
        "are `admin`, `editor` and `viewer` themselves. Of several the highest counts.",
    )
    service_oidc_environment_claim: str = Field(
        default="",
        description="The claim with the environments that a person is bound to: a text or a list, `*` for "
        "all. If unset, a person is bound to none; if set, a person without the claim has no "
        "access.",
    )
    service_oidc_tenant_claim: str = Field(default="", description="The same for tenants.")


def load_settings(**flags: Any) -> Settings:
    """Return the settings of flags, environment and files, in this order; a flag of None is ignored."""
    return resolve(Settings, flags).settings


def resolve_settings(**flags: Any) -> Resolved[Settings]:
    """Return the settings as ``load_settings`` gives them, and where each comes from."""
    return resolve(Settings, flags)
