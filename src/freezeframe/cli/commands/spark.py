"""``freezeframe spark``: show, start and stop the warm Spark server and the warm runner.

Jobs start both by themselves. These commands start them before the first job, show what runs, and stop it.
"""

from __future__ import annotations

import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.options import Json
from freezeframe.cli.output import CONFLICT, Output
from freezeframe.errors import InputNotFound, SetupError

if TYPE_CHECKING:
    from collections.abc import Callable

    from freezeframe.engine.server.server import ServerStatus
    from freezeframe.settings import Settings


app = typer.Typer(no_args_is_help=True)

IdleSeconds = Annotated[
    int | None,
    typer.Option(
        "--idle-seconds", min=1, help="Idle time after which Spark stops (default: from the settings)."
    ),
]
Now = Annotated[bool, typer.Option("--now", help="Stop at once, even if jobs use it: they retry or fail.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Follow new lines.")]

_MIB = 1024 * 1024
# The example's own settings decide where its store is, and no server of another one is used.
_FOREIGN = ("FREEZEFRAME_ROOT", "FREEZEFRAME_CONFIG", "FREEZEFRAME_ENVIRONMENT", "SPARK_REMOTE")
_STOP_SECONDS = 60.0
_RUNNER_STOP_SECONDS = 5.0


@app.command()
def status(as_json: Json = False) -> None:
    """Show what runs: ports, processes, memory, users, and how long it has been idle."""
    from freezeframe.engine.server.server import running_servers
    from freezeframe.settings import load_settings

    settings = load_settings()
    servers = running_servers(settings)
    runner = _runner(settings)
    output = Output(as_json=as_json)
    if as_json:
        output.record(
            {
                "spark": settings.spark.partition(";")[0],
                "servers": [server.to_json() for server in servers],
                "runner": runner,
                "state_dir": str(settings.state_dir),
            }
        )
        return
    if settings.spark.startswith("sc://"):
        output.line(f"Jobs use the Spark server at {settings.spark.partition(';')[0]}.")
    if not servers:
        output.line("No warm Spark server runs; the first job that needs it starts it.")
    for server in servers:
        output.record(_to_dict(server))
    if runner is None:
        output.line("No warm runner runs; the first job starts one.")
    else:
        output.record(
            {
                "Runner": f"process {runner['process']}",
                "Up since": _moment(runner["started"]),
                "Jobs": len(runner["jobs"]),
                "Idle for": f"{runner['idle_seconds']:.0f} s",
            }
        )


@app.command()
def start(idle_seconds: IdleSeconds = None, as_json: Json = False) -> None:
    """Start the warm server and the runner before the first job; if they run, they stay as they are."""
    import os

    from freezeframe.engine.configuration import foreign_remote, local_master, warm_master
    from freezeframe.engine.server.launch import is_archive_awaited
    from freezeframe.engine.server.server import attach, keep_idle, running_servers
    from freezeframe.runs.warm.spawning import start_runner
    from freezeframe.settings import load_settings

    settings = load_settings()
    output = Output(as_json=as_json)
    # The runner loads while Java starts.
    start_runner(settings)
    master = warm_master(settings.spark) or local_master()
    if settings.spark.startswith("sc://") or foreign_remote(os.environ):
        output.line("Spark is a server elsewhere, which is not started from here.")
    else:
        attachment = attach(settings, master, output.line)
        if not as_json and is_archive_awaited(settings):
            output.line(
                "Later starts will be faster once its classes are archived: freezeframe spark archive."
            )
        if idle_seconds is not None:
            keep_idle(attachment.folder, idle_seconds)
        attachment.close()
    if as_json:
        running = [server.to_json() for server in running_servers(settings)]
        output.record({"servers": running, "runner": _runner(settings)})


@app.command()
def archive(as_json: Json = False) -> None:
    """Archive the classes that Spark loads, which halves the time of a day's first job; takes a minute.

    They are those of two small jobs, which run on a server of their own. Without the command a server
    archives its classes after its first job, once it has been idle for ten seconds.
    """
    from freezeframe.settings import load_settings

    output = Output(as_json=as_json)
    began = time.monotonic()
    made = archive_classes(load_settings(), output.line)
    found = {
        "archive": str(made),
        "bytes": made.stat().st_size,
        "seconds": round(time.monotonic() - began, 1),
    }
    output.record(found)


def archive_classes(settings: Settings, progress: Callable[[str], object]) -> Path:
    """Return the archive of the classes of a project's first two jobs, made if there is none."""
    from freezeframe.engine.server.archive import make_archive

    with tempfile.TemporaryDirectory(prefix="freezeframe-") as name:
        return make_archive(settings, lambda training: _run_example(Path(name), training), progress)


def _run_example(folder: Path, settings: Settings) -> None:
    """Run the example project's syncs, each by a process of its own."""
    import os
    import subprocess
    import sys

    variables = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    own = ("state_dir", "spark", "engine", "spark_idle_seconds", "runner_idle_seconds")
    variables |= {f"FREEZEFRAME_{name.upper()}": str(getattr(settings, name)) for name in own}
    run = ("run", "etl.py", "--tenant", "acme", "--input")
    for arguments in (("init",), (*run, "sync-1"), (*run, "sync-2")):
        command = [sys.executable, "-m", "freezeframe", *arguments]
        done = subprocess.run(  # noqa: S603 - our own command
            command, cwd=folder, env=variables, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SetupError(
                "The example project does not run on this machine.",
                cause=done.stderr.strip() or done.stdout.strip(),
                remedy="freezeframe doctor says what is missing.",
            )


@app.command()
def stop(now: Now = False, as_json: Json = False) -> None:
    """Stop the warm server and the runner as soon as no job uses them; with --now at once.

    The exit code is 3 if jobs still use one of them: it stops when they have ended.
    """
    from freezeframe.engine.server.server import running_servers
    from freezeframe.engine.server.server import stop as stop_server
    from freezeframe.runs.warm.runner_folder import stop_runners
    from freezeframe.settings import load_settings

    settings = load_settings()
    output = Output(as_json=as_json)
    stop_runners(settings, _RUNNER_STOP_SECONDS)
    servers = running_servers(settings)
    left = [server for server in servers if not stop_server(server, _STOP_SECONDS, at_once=now)]
    if as_json:
        output.record({"stopped": len(servers) - len(left), "still_used": len(left)})
    elif left:
        output.line("Jobs still use it: it stops when they have ended. With --now it stops at once.")
    else:
        output.line("Stopped." if servers else "No warm Spark server was running.")
    if left:
        raise typer.Exit(CONFLICT)


@app.command()
def logs(follow: Follow = False, as_json: Json = False) -> None:
    """Print the log of the server that runs, or of the last one that ran."""
    from freezeframe.engine.server.server import follow_lines
    from freezeframe.settings import load_settings

    output = Output(as_json=as_json)
    log = _newest_log(load_settings())
    if as_json:
        output.record({"log": str(log), "lines": list(follow_lines(log, follow=False))})
        return
    for line in follow_lines(log, follow=follow):
        output.line(line.rstrip("\n"))


def _newest_log(settings: Settings) -> Path:
    found = sorted(settings.state_dir.glob("spark-*/server.log"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise InputNotFound(
            "There is no log of a warm Spark server.",
            cause=f"None was ever started with the state folder {settings.state_dir}.",
            remedy="Start one: freezeframe spark start.",
        )
    return found[-1]


def _runner(settings: Settings) -> dict[str, Any] | None:
    import os

    from freezeframe.runs.warm.runner_folder import ask, is_supported, runner_folder

    if not is_supported() or not settings.runner_idle_seconds:
        return None
    return ask(runner_folder(settings, os.environ), {"about": True}, 1.0)


def _to_dict(server: ServerStatus) -> dict[str, object]:
    memory = "unknown" if server.memory_bytes is None else f"{server.memory_bytes // _MIB} MiB"
    clients = "unknown" if server.clients is None else server.clients
    return {
        "Spark server": f"127.0.0.1:{server.port} ({server.master})" + " retiring" * server.is_retiring,
        "Process": server.process,
        "Memory": f"{memory} (heap up to {server.spark_memory})",
        "Up since": _moment(server.started_at),
        "Used by": f"{clients} processes",
        "Idle for": f"{server.idle_seconds:.0f} s",
        "Java": server.java,
        "Log": server.log,
    }


def _moment(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    return f"{moment} ({(time.time() - seconds) / 60:.0f} min)"
