"""The ``freezeframe`` command line: its groups, and the exit codes of errors.

Modules that take long to load are imported by the command that needs them, so that
``freezeframe --help`` answers at once.
"""

import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

import typer
from typer._click.exceptions import NoArgsIsHelpError
from typer.core import TyperGroup
from typer.exceptions import TyperException

from freezeframe.cli.output import FAILED, INTERRUPTED, OK, Output, exit_code
from freezeframe.configuration.names import command_remedy
from freezeframe.errors import FixTheRequest, FreezeframeError
from freezeframe.extras import missing_extra

_EXAMPLES = """
init shop
run etl.py --tenant acme --input sync-output
worker --concurrency 4
job submit etl.py --tenant acme --input sync-output --wait
job list --tenant acme
job show nightly-2026-11-23
job logs nightly-2026-11-23
job cancel nightly-2026-11-23
job cancel-group nightly-2026-11-23
job revert sync-2026-11-24 --dry-run
job pull nightly-2026-11-23 debug --tenant acme
job replay nightly-2026-11-22 nightly-2026-11-23 --script fixed.py --tenant acme
job retry nightly-2026-11-23
job publish nightly-2026-11-23
job discard nightly-2026-11-23
job publish-group nightly-2026-11-23 --passed
job discard-group nightly-2026-11-23
job wait nightly-2026-11-23 --timeout 600
schedule create nightly etl.py --tenant acme --cron "0 2 * * *" --zone Europe/Berlin
schedule list --tenant acme
schedule enable nightly --tenant acme
schedule disable nightly --tenant acme
schedule delete nightly --tenant acme
tenant list
tenant create acme
tenant show --tenant acme
tenant history --tenant acme --limit 10
tenant diff 3 4 --tenant acme
tenant restore 3 --tenant acme --dry-run
tenant revert 3 --tenant acme --dry-run
tenant tag before-migration --tenant acme
tenant untag before-migration --tenant acme
tenant delete acme
tenant clone acme acme-test
tenant gc --tenant acme --dry-run
tenant verify --tenant acme
tenant erase Contact --key 007 --tenant acme
tenant retention --keep-days 90 --tenant acme
stream list --tenant acme
stream show Lead --where "Status = 'open'" --tenant acme
stream history Lead --tenant acme
stream changes Lead --starting-version 3 --tenant acme
stream diff Lead 3 4 --tenant acme
stream restore Lead 3 --tenant acme --dry-run
stream path Lead --tenant acme
stream row Lead 007 --tenant acme
stream explain Lead --tenant acme
stream import Lead leads.csv --key Id --tenant acme
stream export Lead --to exported --tenant acme
stream retype Lead Id string --tenant acme
stream drop Lead --tenant acme
stream release Lead --tenant acme
stream adopt Lead --tenant acme
stream repair Lead --tenant acme
delivery list --tenant acme
delivery show Lead crm --tenant acme
delivery retry Lead crm --key 007 --tenant acme
sql "SELECT Status, count(*) AS leads FROM Lead GROUP BY Status" --tenant acme
file list --tenant acme
file read config.json --tenant acme
file write config.json new-config.json --tenant acme
file patch config.json '{"region": "eu"}' --tenant acme
file move old.json new.json --tenant acme
file delete old.json --tenant acme
file history config.json --tenant acme
import Account.csv --key Id --tenant acme
migrate hotglue/acme/snapshots --tenant acme --dry-run
export exported --tenant acme
gc --tenant acme --dry-run
delta show snapshots/Lead
delta history snapshots/Lead
delta verify snapshots/Lead
delta checkpoint snapshots/Lead
serve --port 8750
key create --name etl --scope snapshots:read
key list
key rotate 4kq2
key revoke 4kq2
key sign-out
key rotate-master
audit list --tenant acme
audit export --tenant acme
audit verify
spark status
spark start
spark stop
spark archive
spark logs
doctor
prove --storage s3://bucket/prefix
config show
config get root
config set root /srv/freezeframe
config path
"""


def example(command: str) -> str | None:
    """Return the example of a command such as ``tenant list``, as a shell takes it; None for a group."""
    lines = (line for line in _EXAMPLES.splitlines() if line == command or line.startswith(f"{command} "))
    found = next(lines, None)
    return None if found is None else f"Example: freezeframe {found}"


@dataclass(frozen=True, slots=True)
class Part:
    """A command that is not loaded yet; ``target`` is ``module:name`` in this package."""

    target: str
    help: str
    section: str

    def load(self, name: str) -> Any:
        """Return the command, ready to be invoked."""
        module, _, attribute = self.target.partition(":")
        found = getattr(importlib.import_module(f"{__package__}.commands.{module}"), attribute)
        holder = typer.Typer(add_completion=False, rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            holder.add_typer(typer.Typer(no_args_is_help=True), name=name, help=self.help)
            group = typer.main.get_group(holder).commands[name]
            group.commands = _CommandsOnDemand(name, found)  # type: ignore[attr-defined]  # it is a group
            return group
        holder.command(name)(found)
        return _with_plain_help(typer.main.get_command(holder), name)


class _CommandsOnDemand(Mapping[str, Any]):
    """A group's commands, each of which is made when it is used: most of the time goes into its options."""

    def __init__(self, name: str, group: typer.Typer) -> None:
        self._name = name
        self._given = {
            command.name or getattr(command.callback, "__name__", ""): command
            for command in group.registered_commands
        }

    def __getitem__(self, name: str) -> Any:
        holder = typer.Typer(add_completion=False, rich_markup_mode=None)
        holder.registered_commands = [self._given[name]]
        command = typer.main.get_command(holder)
        command.name = name
        return _with_plain_help(command, f"{self._name} {name}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


def _with_plain_help(command: Any, words: str) -> Any:
    """Add an example to the command, and TEXT, NUMBER, PATH or MOMENT in place of Python's types."""
    command.epilog = example(words)
    for param in command.params:
        kind = param.type_descriptor
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None  # noqa: ARG005 - its name says enough
        elif not (param.metavar or kind.is_choice or param.is_flag):
            param.metavar = _kind(kind.annotation)
        if _kind(kind.annotation) == "PATH":
            param.process_value = functools.partial(_path, param, param.process_value)
    return command


def _path(parameter: Any, convert: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    """Return the path; an empty text is refused, because Python takes it for the working directory."""
    if "" in (value if isinstance(value, list | tuple) else (value,)):
        raise typer.BadParameter("The path is empty.", ctx, parameter)
    return convert(ctx, value)


def _kind(annotation: Any) -> str:
    inner = next(iter(get_args(annotation)), annotation)
    return {int: "NUMBER", float: "NUMBER", Path: "PATH", datetime: "MOMENT"}.get(inner, "TEXT")


class LazyGroup(TyperGroup):
    """A command group whose subclasses list their commands in ``parts``, section by section."""

    parts: ClassVar[Mapping[str, Part]] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._loaded: dict[str, Any] = {}
        # Typer looks here for the names that a mistyped one may mean.
        self.commands = {name: typer.core.TyperCommand(name) for name in self.parts}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer's signature
        """Return the names, in order."""
        return list(self.parts)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Typer's signature
        """Return the command of that name, loaded; None if there is none."""
        if cmd_name in self.parts and cmd_name not in self._loaded:
            self._loaded[cmd_name] = self.parts[cmd_name].load(cmd_name)
        return self._loaded.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's signature
        """Write a list of commands for each section."""
        width = max(map(len, self.parts), default=0)
        for section in dict.fromkeys(part.section for part in self.parts.values()):
            rows = [(name, part.help) for name, part in self.parts.items() if part.section == section]
            with formatter.section(section):
                # The same width in all sections, so that they align.
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Completions of names without loading a command; of options after a hyphen."""
        if incomplete.startswith("-"):
            return super(TyperGroup, self).shell_complete(ctx, incomplete)
        from typer._click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=part.help)
            for name, part in self.parts.items()
            if name.startswith(incomplete)
        ]


_COMPLETION = "_FREEZEFRAME_COMPLETE"  # set by the shell when it asks for completions
_PREFIX = "FREEZEFRAME_"
_BEGIN, _JOBS, _DATA, _SERVICE, _MACHINE = "Begin", "Jobs", "Data", "Service", "This machine"


class _Commands(LazyGroup):
    """All commands. Each module is imported when its command is used; the lines here are the help."""

    parts = {  # noqa: RUF012 - declared as ClassVar by the base
        "init": Part("project:init", "Start a project: a script, settings, and two syncs to try.", _BEGIN),
        "run": Part("run:run", "Run a script for a tenant as one commit.", _JOBS),
        "worker": Part("jobs:worker", "Run the jobs of the queue.", _JOBS),
        "job": Part("jobs:app", "The queue: submit, list, show, logs, cancel, retry, wait.", _JOBS),
        "schedule": Part("jobs:schedule_app", "Scripts that run at the times of a cron expression.", _JOBS),
        "tenant": Part(
            "tenant:app", "A store's tenants: create, history, diff, restore, revert, delete.", _DATA
        ),
        "stream": Part("stream:app", "A tenant's streams: rows, history, diff, restore, import.", _DATA),
        "delivery": Part("delivery:app", "What targets have of a stream's rows: list, show, retry.", _DATA),
        "sql": Part("sql:sql_command", "Run a Spark SQL query on a tenant's streams.", _DATA),
        "file": Part("file:app", "A tenant's files: list, read, write, history.", _DATA),
        "import": Part("transfer:import_command", "Update a tenant's streams from files of rows.", _DATA),
        "migrate": Part("transfer:migrate", "Copy a directory of snapshot files into a tenant.", _DATA),
        "export": Part("transfer:export_command", "Write a tenant's streams to files of rows.", _DATA),
        "gc": Part("upkeep:gc_command", "Delete expired versions and unreferenced files.", _DATA),
        "delta": Part("delta:app", "A Delta table's log: show, history, verify.", _DATA),
        "serve": Part("serve:serve", "The REST service of a store.", _SERVICE),
        "key": Part("access:key_app", "The service's keys: create, list, rotate, revoke.", _SERVICE),
        "audit": Part("access:audit_app", "The log of changes: list, export, verify.", _SERVICE),
        "spark": Part("spark:app", "The warm Spark server: status, start, stop, logs.", _MACHINE),
        "doctor": Part("doctor:doctor", "Check that jobs can run on this machine.", _MACHINE),
        "prove": Part("prove:prove", "Test the product's promises on a storage.", _MACHINE),
        "config": Part("project:app", "The settings and their sources: show, get, set.", _MACHINE),
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


def carry_out(arguments: Sequence[str], commands: typer.Typer = app, name: str = "freezeframe") -> int:
    """Run a command in this process and return its exit code; an error is printed without a traceback."""
    output = Output(as_json="--json" in arguments)
    _warn_of_unknown_variables(output)
    try:
        return commands(args=list(arguments), prog_name=name, standalone_mode=False) or OK
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
        output.error(_usage(error, arguments))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, for example) has closed the pipe; Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        found = _known_error(error)
        if (found is None or isinstance(error, OSError)) and os.environ.get("FREEZEFRAME_DEBUG"):
            raise
        unexpected = FreezeframeError(
            "freezeframe failed with an unexpected error.",
            cause=f"{type(error).__name__}: {error}",
            remedy="Run it again with FREEZEFRAME_DEBUG=1 and report its output.",
        )
        output.error(found or unexpected)
        return exit_code(found) if found else FAILED


def _warn_of_unknown_variables(output: Output) -> None:
    """Warn of variables that look like settings and are none; the command ignores them."""
    if _COMPLETION in os.environ or not any(name.upper().startswith(_PREFIX) for name in os.environ):
        return  # the settings need not be loaded
    from freezeframe.configuration.names import unknown_variables
    from freezeframe.settings import Settings

    for variable in unknown_variables(os.environ, Settings.model_fields):
        output.warning(f"The variable {variable.name} is not a setting and has no effect.", variable.remedy)


def _usage(error: TyperException, arguments: Sequence[str]) -> FixTheRequest:
    context = getattr(error, "ctx", None)
    command = "freezeframe" if context is None else context.command_path
    remedy = command_remedy(arguments) or f"See {command} --help."
    return FixTheRequest(error.format_message(), remedy=remedy, code="USAGE")


def _known_error(error: Exception) -> FreezeframeError | None:
    """Return the library's error for an exception of Python; None if there is none."""
    if isinstance(error, ModuleNotFoundError):
        return missing_extra(error)
    if not isinstance(error, OSError):
        return None
    return FreezeframeError(  # a file outside of any store
        f"The system refused {error.filename or 'something that the command needs'}.",
        cause=error.strerror or str(error),
        remedy="Check the disk and its permissions; FREEZEFRAME_DEBUG=1 shows where it was.",
    )
