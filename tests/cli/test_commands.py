"""All commands together: what holds for each of them, whoever adds one."""

import shlex

import pytest
import typer

from freezeframe.cli.application import app
from freezeframe.cli.main import main


def commands():
    """Every command that does something, by its words."""

    def walk(words, command):
        if not hasattr(command, "list_commands"):
            yield " ".join(words), command
            return
        for name in command.list_commands(None):
            yield from walk([*words, name], command.get_command(None, name))

    return dict(walk(["freezeframe"], typer.main.get_command(app)))


COMMANDS = commands()


def test_the_tree_is_the_one_that_is_promised():
    """The groups and commands of the first level that people are told of."""
    first = {words.split()[1] for words in COMMANDS}
    promised = "init tenant stream file delta import export gc doctor config"

    assert set(promised.split()) <= first


def test_the_help_is_one_line_for_each_command(capsys, monkeypatch):
    """Each command of the first level is a sentence that fits 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    parts = typer.main.get_command(app).parts

    assert [name for name, part in parts.items() if not part.help.endswith(".")] == []
    assert [name for name, part in parts.items() if not _is_told(lines, name, part.help)] == []


def _is_told(lines, name, text):
    return any(line.split(maxsplit=1) == [name, text] for line in lines)


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_answers_programs_and_people(words):
    """Each has --json, a line of help that ends as a sentence, and help for every option and argument."""
    command = COMMANDS[words]
    options = [name for param in command.params for name in param.opts]

    assert "--json" in options
    assert (command.help or "").split("\n\n")[0].rstrip().endswith(".")
    assert [param.name for param in command.params if not (param.help or "").strip()] == []


@pytest.mark.parametrize("words", COMMANDS)
def test_the_help_of_each_command_ends_with_an_example_that_it_takes(words, capsys):
    """Its options are there, and its arguments are as many as it needs."""
    command = COMMANDS[words]
    assert main([*words.split()[1:], "--help"]) == 0
    assert " ".join(command.epilog.split()) in " ".join(capsys.readouterr().out.split())
    assert command.epilog.startswith(f"Example: {words}")

    given = shlex.split(command.epilog.removeprefix("Example: "))[len(words.split()) :]
    context = command.context_class(command, info_name=words)
    values, rest, _ = command.make_parser(context).parse_args(given)
    needed = {
        param.name for param in command.params if param.param_type_name == "argument" and param.required
    }
    assert (rest, {name for name in needed if not values.get(name)}) == ([], set())


@pytest.mark.parametrize("words", COMMANDS)
def test_help_names_no_type_of_python(words, capsys):
    """An option's value is TEXT, a NUMBER, a PATH, a MOMENT, or one of its choices."""
    assert main([*words.split()[1:], "--help"]) == 0

    said = capsys.readouterr().out
    assert [leak for leak in ("<str>", "<int", "<float", "<path>", "list[", "<date") if leak in said] == []
