"""The page about the Singer target: its commands run, and its settings are those that there are."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from freezeframe.singer.config import TargetConfig, settings_table

PAGE = (Path(__file__).parent.parent.parent / "docs" / "how-to" / "singer.md").read_text()
COMMANDS = {"target-freezeframe": "singer_target", "freezeframe": "main"}


def blocks(kind):
    """The code blocks of a kind, in their order."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.long
def test_the_commands_of_the_page_print_what_it_says(tmp_path):
    """Configuration, tap and commands in an empty folder; the state is read back from the tenant."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in COMMANDS.items():
        program = programs / name
        code = f"import sys\nfrom freezeframe.cli.{module} import main\nsys.exit(main())\n"
        program.write_text(f"#!{sys.executable}\n{code}")
        program.chmod(0o700)
    (tmp_path / "config.json").write_text(blocks("json")[0])
    (tmp_path / "tap.jsonl").write_text(blocks("jsonl")[0])
    load, read = blocks("sh")
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    options = {"shell": True, "cwd": tmp_path, "env": environment, "text": True}
    told = subprocess.run(
        load, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
    ).stdout
    subprocess.run(read, check=True, **options)

    assert sorted(blocks("text")[0].splitlines()) == sorted(told.splitlines())
    assert told.splitlines()[-1] + "\n" == (tmp_path / "state.json").read_text()


def test_meltano_is_told_settings_that_there_are():
    """Each setting of the plugin's definition is one of the target."""
    (loader,) = yaml.safe_load(blocks("yaml")[0])["plugins"]["loaders"]
    named = {item["name"] for item in loader["settings"]} | set(loader["config"])

    assert named - set(TargetConfig.model_fields) == set()


def test_the_table_of_settings_is_what_the_target_says_of_itself():
    """The page ends with the table of `--about --format markdown`."""
    assert PAGE.endswith(f"## Settings\n\n{settings_table()}\n")
