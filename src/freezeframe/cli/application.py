"""The ``freezeframe`` command line: its groups, and the exit codes of errors.

Modules that take long to load are imported by the command that needs them, so that
``freezeframe --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer._click.exceptions import NoArgsIsHelpError
from typer.exceptions import TyperException

from freezeframe.cli.lazy_group import LazyGroup, Part
from freezeframe.cli.terminal.exit_codes import FAILED, INTERRUPTED, OK, exit_code
from freezeframe.cli.terminal.output import Output
from freezeframe.configuration.gone import command_remedy
from freezeframe.errors import FixTheRequest, FreezeframeError
from freezeframe.extras import missing_extra

_COMPLETION = "_FREEZEFRAME_COMPLETE"  # set by the shell when it asks what a line could go on with
_PREFIX = "FREEZEFRAME_"
_BEGIN, _JOBS, _DATA, _SERVICE, _MACHINE = "Begin", "Jobs", "Data", "Service", "This machine"


class _Commands(LazyGroup):
    """All commands. Each module is imported when its command is used; the lines here are the help."""

    parts = {  # noqa: RUF012 - declared as ClassVar by the base
        "init": Part("setup.init:init", "Start a project: a script, settings, and two syncs to try.", _BEGIN),
        "run": Part("jobs.run:run", "Run a script for a tenant as one commit.", _JOBS),
        "worker": Part("jobs.worker:worker", "Run the jobs of the queue.", _JOBS),
        "job": Part("jobs.job:app", "The queue: submit, list, show, logs, cancel, retry, wait.", _JOBS),
        "schedule": Part("jobs.schedule:app", "Scripts that are run again and again, by cron.", _JOBS),
        "tenant": Part(
            "tenant.commands:app", "A store's tenants: their past, their coming and going.", _DATA
        ),
        "stream": Part("stream.commands:app", "A tenant's streams: rows, history, import, custody.", _DATA),
        "sql": Part("sql:sql_command", "Ask Spark SQL over a tenant's streams.", _DATA),
        "file": Part("file:app", "A tenant's files: list, read, write, history.", _DATA),
        "import": Part("shortcuts:import_command", "Bring files of rows into a tenant's streams.", _DATA),
        "migrate": Part("migrate:migrate", "Turn a directory of snapshot files into a tenant.", _DATA),
        "export": Part("shortcuts:export_command", "Write a tenant's streams to files of rows.", _DATA),
        "gc": Part("shortcuts:gc_command", "Delete expired versions and unreferenced files.", _DATA),
        "delta": Part("delta:app", "A Delta table's log: show, history, verify.", _DATA),
        "serve": Part("service.serve:serve", "The REST service of a store.", _SERVICE),
        "key": Part("service.api_key:app", "The keys of the service, and the secrets behind them.", _SERVICE),
        "audit": Part("service.audit:app", "Who did what: list, export, verify.", _SERVICE),
        "spark": Part("spark:app", "The warm Spark server: status, start, stop, logs.", _MACHINE),
        "doctor": Part("setup.doctor:doctor", "Check that jobs can run here, and say what to do.", _MACHINE),
        "prove": Part("setup.prove:prove", "Put every promise to the test on a storage.", _MACHINE),
        "upgrade": Part("upgrade:upgrade", "Bring an older control database to this version.", _MACHINE),
        "config": Part(
            "setup.config:app", "The settings: show, get, set; and where each comes from.", _MACHINE
        ),
    }


app = typer.Typer(
    name="freezeframe",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich help panels would take longer than the rest of the help
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"freezeframe {version('freezeframe')}\n")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Versioned snapshot storage for multi-tenant ETL, as Delta tables."""


def carry_out(given: Sequence[str], commands: typer.Typer = app, name: str = "freezeframe") -> int:
    """Carry out one command in this process; its exit code. Nobody sees a traceback."""
    output = Output(as_json="--json" in given)
    _tell_unknown_variables(output)
    try:
        return commands(args=list(given), prog_name=name, standalone_mode=False) or OK
    except FreezeframeError as error:
        if _COMPLETION not in os.environ:  # completion must print no messages
            output.error(error)
        return exit_code(error)
    except NoArgsIsHelpError as error:
        # The help is the answer to a group without a command; for programs it is a wrong call like any other.
        if output.as_json:
            output.error(FixTheRequest("Missing command.", remedy="See freezeframe --help.", code="USAGE"))
        else:
            sys.stderr.write(f"{error.format_message()}\n")
        return error.exit_code
    except TyperException as error:
        output.error(_usage(error, given))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, for example) has seen enough; Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        found = _as_told(error)
        if (found is None or isinstance(error, OSError)) and os.environ.get("FREEZEFRAME_DEBUG"):
            raise
        output.error(found or _unexpected_error(error))
        return exit_code(found) if found else FAILED


def _tell_unknown_variables(output: Output) -> None:
    """Warn of variables that were meant to be settings: the command goes on as if they were not there."""
    if _COMPLETION in os.environ or not any(name.upper().startswith(_PREFIX) for name in os.environ):
        return  # the settings need not be loaded
    from freezeframe.configuration.variables import unknown_variables
    from freezeframe.settings import Settings

    for variable in unknown_variables(os.environ, Settings.model_fields):
        output.warning(f"The variable {variable.name} is not a setting and has no effect.", variable.remedy)


def _usage(error: TyperException, given: Sequence[str]) -> FixTheRequest:
    context = getattr(error, "ctx", None)
    command = "freezeframe" if context is None else context.command_path
    remedy = command_remedy(given) or f"See {command} --help."
    return FixTheRequest(error.format_message(), remedy=remedy, code="USAGE")


def _as_told(error: Exception) -> FreezeframeError | None:
    """The library's error for one of another class; None if it is not known."""
    if isinstance(error, ModuleNotFoundError):
        return missing_extra(error)
    return _file_error(error) if isinstance(error, OSError) else None


def _file_error(error: OSError) -> FreezeframeError:
    """The error for a file outside of any store that a command cannot read or write."""
    return FreezeframeError(
        f"The system refused {error.filename or 'something that the command needs'}.",
        cause=error.strerror or str(error),
        remedy="Check the disk and its permissions; FREEZEFRAME_DEBUG=1 shows where it was.",
    )


def _unexpected_error(error: Exception) -> FreezeframeError:
    return FreezeframeError(
        "freezeframe met something that it did not expect.",
        cause=f"{type(error).__name__}: {error}",
        remedy="Run it again with FREEZEFRAME_DEBUG=1 and report what it prints.",
    )
