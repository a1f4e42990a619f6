"""Which scripts a worker runs is decided where they are run."""

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.runs.model.permitted_script import IMPORT_SCRIPT, with_permitted_script
from freezeframe.runs.model.request import RunRequest
from freezeframe.settings import Settings


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


def test_an_import_is_always_this_versions(permitted):
    """Wherever the submitter has freezeframe, and also as former versions named it."""
    for folder in ("runs", "service"):
        assert permitted(f"/elsewhere/freezeframe/{folder}/import_script.py") == IMPORT_SCRIPT
