"""The header of a script, and which scripts may be run."""

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.runs.request import RunRequest
from freezeframe.runs.script_header import (
    BUILT_IN_IMPORT,
    ScriptHeader,
    parse_script_header,
    read_script_header,
    with_permitted_script,
)
from freezeframe.settings import Settings

HEAD, END = "# /// script\n", "# ///\n"


def header(*lines):
    """A script with the lines as its header."""
    return HEAD + "".join(f"# {line}\n" for line in lines) + END + "print(1)\n"


@pytest.mark.parametrize(
    "text", ["", "print(1)\n", HEAD + "# open = 1\n", header('dependencies = ["pandas"]')]
)
def test_without_our_table_nothing_is_declared(text):
    """No header, one without an end, or one of other tools; any parameter is taken then."""
    found = parse_script_header(text)
    assert found == ScriptHeader()
    assert found.filled({"limit": 5}) == {"limit": 5}


def test_a_header_is_read_wherever_it_stands(tmp_path):
    """Behind a licence, or data, of any length."""
    script = tmp_path / "etl.py"
    script.write_text("# licence\n" * 20_000 + header("[tool.freezeframe]", 'description = "late"'))
    assert "late" == read_script_header(script).description


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_a_header_in_a_text_is_none(quotes):
    """A template before or behind the script's own, or in a script without one."""
    template = f"TEMPLATE = r{quotes}\n" + header("[tool.freezeframe]", 'then = "rm"') + f"{quotes}\n"
    own = header("[tool.freezeframe]", 'description = "own"')
    found = [parse_script_header(text) for text in (template + own, own + template, template)]
    assert [ScriptHeader("own"), ScriptHeader("own"), ScriptHeader()] == found


def test_a_script_that_is_no_python_has_its_header():
    """Its run says what is wrong with it."""
    own = header("[tool.freezeframe]", 'description = "own"')
    assert "own" == parse_script_header(own + "print((\n").description


def test_a_type_follows_from_the_default_or_the_choices():
    """Whole and other numbers, truth and text; line ends of Windows are none of the text."""
    text = header(
        "[tool.freezeframe.parameters]",
        "a = 1",
        "b = 1.5",
        "c = true",
        'd = "x"',
        "e = { choices = [1, 2] }",
        "f = {}",
    ).replace("\n", "\r\n")
    types = {parameter.name: parameter.type for parameter in parse_script_header(text).parameters}
    assert types == {"a": "integer", "b": "number", "c": "boolean", "d": "text", "e": "integer", "f": "text"}


@pytest.mark.parametrize(
    "lines",
    [
        ["= 5"],
        ["tool = 5"],
        ["[tool.freezeframe]", "description = 5"],
        ["[tool.freezeframe]", "parameters = 5"],
        ["[tool.freezeframe.parameters]", '"not a name" = 5'],
        ["[tool.freezeframe.parameters]", "a = [1]"],
        ["[tool.freezeframe.parameters]", "a = 2026-01-01"],
        ["[tool.freezeframe.parameters]", "a = { type = 'date' }"],
        ["[tool.freezeframe.parameters]", "a = { type = 5 }"],
        ["[tool.freezeframe.parameters]", "a = { type = ['text'] }"],
        ["[tool.freezeframe.parameters]", "a = { defalt = 5 }"],
        ["[tool.freezeframe.parameters]", "a = { choices = 5 }"],
        ["[tool.freezeframe.parameters]", "a = { choices = [1, 'x'] }"],
        ["[tool.freezeframe.parameters]", "a = { default = 3, choices = [1, 2] }"],
        ["[tool.freezeframe.parameters]", "a = { default = 3, required = true }"],
    ],
)
def test_a_header_that_cannot_be_is_refused(lines):
    """With what is wrong, and where it is to be corrected."""
    with pytest.raises(InvalidOption) as refused:
        parse_script_header(header(*lines))
    assert (refused.value.error_code, bool(refused.value.cause)) == ("SCRIPT_HEADER", True)


@pytest.fixture
def permitted(tmp_path):
    """The script that is run for a path, with a folder of scripts or without."""
    (tmp_path / "scripts").mkdir()
    for place in ("scripts/etl.py", "other.py"):
        (tmp_path / place).touch()

    def decide(script, folder=tmp_path / "scripts"):
        request = RunRequest(root="store", environment="dev", tenant="acme", script=script, job_id="j")
        return with_permitted_script(request, Settings(service_scripts_dir=folder)).script

    return decide


def test_a_script_of_the_folder_is_run_by_its_real_path(permitted, tmp_path):
    """Also by a link from within the folder."""
    (tmp_path / "scripts" / "alias.py").symlink_to("etl.py")
    for name in ("etl.py", "alias.py"):
        assert (tmp_path / "scripts" / "etl.py").resolve() == permitted(tmp_path / "scripts" / name)


@pytest.mark.parametrize("name", ["other.py", "scripts/../other.py", "scripts/link.py", "scripts2/etl.py"])
def test_nothing_outside_the_folder_is_run(permitted, tmp_path, name):
    """Neither by its path nor by a link; without a folder any script may be run."""
    (tmp_path / "scripts" / "link.py").symlink_to(tmp_path / "other.py")
    with pytest.raises(InvalidOption):
        permitted(tmp_path / name)
    assert tmp_path / name == permitted(tmp_path / name, folder=None)


def test_a_command_of_the_queue_is_run_only_from_the_scripts_header(tmp_path):
    """A row of the queue may name no command where it may name no script; elsewhere it may."""
    script = tmp_path / "scripts" / "etl.py"
    script.parent.mkdir()
    script.touch()
    for named in (script, BUILT_IN_IMPORT):
        for given in ({"then": "rm -r ."}, {"keep_on_failure": True}):
            request = RunRequest("store", "default", "acme", named, "job", **given)
            with pytest.raises(InvalidOption, match="may not name what is done with its output"):
                with_permitted_script(request, Settings(service_scripts_dir=script.parent))
            assert with_permitted_script(request, Settings()).keep_on_failure == request.keep_on_failure


def test_the_built_in_import_is_known_by_its_name(permitted, tmp_path):
    """With a folder and without it; a file of that path is no import, wherever it lies."""
    for folder in (tmp_path / "scripts", None):
        script = permitted(BUILT_IN_IMPORT, folder)
        assert script.is_file()
        assert "import_stream" in script.read_text()
    for place in (script, tmp_path / BUILT_IN_IMPORT, "/elsewhere/freezeframe/runs/import_script.py"):
        with pytest.raises(InvalidOption):
            permitted(place)
