"""Which scripts a worker runs is decided where they are run."""

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.runs.request import RunRequest
from freezeframe.runs.script_header import BUILT_IN_IMPORT, with_permitted_script
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


def test_the_built_in_import_is_known_by_its_name(permitted, tmp_path):
    """With a folder and without it; a file of that path is no import, wherever it lies."""
    for folder in (tmp_path / "scripts", None):
        script = permitted(BUILT_IN_IMPORT, folder)
        assert script.is_file()
        assert "import_stream" in script.read_text()
    for place in (script, tmp_path / BUILT_IN_IMPORT, "/elsewhere/freezeframe/runs/import_script.py"):
        with pytest.raises(InvalidOption):
            permitted(place)
