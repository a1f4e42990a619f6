"""Nothing is opened through a link, by the kernel's own means and by ours where it has none."""

import contextlib
import errno
import os

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from freezeframe.errors import FreezeframeError, UnsafePath
from freezeframe.storage import LocalStorage, PrefixStorage
from freezeframe.storage.safe_open import open_beneath, open_regular, open_root, open_stepwise, remove_beneath

CANARY = b"canary of another tenant"
OPENERS = [open_beneath, open_stepwise]


@pytest.fixture
def two_tenants(tmp_path):
    """A tenant's folder with a file, links of every kind out of it, and another tenant's secret."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "secret").write_bytes(CANARY)
    own = tmp_path / "a"
    (own / "folder").mkdir(parents=True)
    (own / "folder" / "file").write_bytes(b"own")
    (own / "link").symlink_to(tmp_path / "b" / "secret")
    (own / "relative").symlink_to("../b/secret")
    (own / "inside").symlink_to("folder/file")
    (own / "door").symlink_to(tmp_path / "b")
    (own / "folder" / "door").symlink_to("../../b")
    return tmp_path


@pytest.mark.parametrize("opener", OPENERS)
def test_what_is_beneath_opens(opener, two_tenants):
    """Plain files and folders open, the directory itself too."""
    with open_root(two_tenants / "a") as root:
        for name, flags in (("folder/file", os.O_RDONLY), ("folder", os.O_DIRECTORY), ("", os.O_DIRECTORY)):
            os.close(opener(root, name, flags))
        for name in ("nothing", "folder/nothing", "nothing/at/all"):
            with pytest.raises(FileNotFoundError):
                opener(root, name, os.O_RDONLY)
        with pytest.raises(NotADirectoryError):
            opener(root, "folder/file/below", os.O_RDONLY)


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize(
    "name",
    [
        "link",
        "relative",
        "inside",
        "door/secret",
        "folder/door/secret",
        "../b/secret",
        "folder/../../b/secret",
    ],
)
def test_links_and_climbing_are_refused(opener, name, two_tenants):
    """Links out of the directory, links inside it, and ``..`` end in ELOOP."""
    with open_root(two_tenants / "a") as root, pytest.raises(OSError, match=r".") as caught:
        opener(root, name, os.O_RDONLY)
    assert errno.ELOOP == caught.value.errno


def test_openers_agree(two_tenants):
    """For any name, ours refuses or opens just what the kernel's does."""

    @settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(
            st.sampled_from(["folder", "file", "door", "link", "secret", "b", "..", ".", ""]), max_size=5
        )
    )
    @example(["folder", "file", "."])
    @example(["folder", "file", ""])
    def compare(parts):
        name = "/".join(parts)
        answers = []
        with open_root(two_tenants / "a") as root:
            for opener in OPENERS:
                try:
                    handle = opener(root, name, os.O_RDONLY)
                except OSError as error:
                    answers.append(None if error.errno else error)
                else:
                    answers.append(os.fstat(handle).st_ino)
                    os.close(handle)
        inside = {(two_tenants / "a" / item).stat().st_ino for item in ("", "folder", "folder/file")}
        # ``folder/..`` stays beneath for the kernel; ours refuses every climb.
        if ".." not in parts:
            assert answers[0] == answers[1]
        assert set(answers) <= {None, *inside}

    compare()


@pytest.mark.parametrize("kind", ["root", "folder of the root"])
@pytest.mark.parametrize("name", ["link", "relative", "door/secret", "folder/door/secret"])
def test_no_verb_of_a_storage_follows_a_planted_link(kind, name, two_tenants):
    """Reading says UnsafePath, listing shows nothing, and writing or deleting leaves the target alone."""
    storage = (
        LocalStorage(two_tenants / "a") if kind == "root" else PrefixStorage(LocalStorage(two_tenants), "a")
    )
    for call in (storage.read, storage.local_path, storage.uri):
        with pytest.raises(UnsafePath):
            call(name)
    for call in (storage.put_if_absent, storage.replace):
        try:
            call(name, b"forged")
        except (FreezeframeError, FileExistsError):
            continue
    for folder in (name, name.rpartition("/")[0]):
        try:
            assert [s for s in storage.list_from(folder) if s.size == len(CANARY)] == []
        except UnsafePath:
            continue
    with contextlib.suppress(UnsafePath):
        storage.delete(name)
    assert (two_tenants / "b" / "secret").read_bytes() == CANARY
    assert [file.name for file in (two_tenants / "b").iterdir()] == ["secret"]


def test_a_walk_tells_links_as_links(two_tenants):
    """Listing all below names the links and never what they lead to."""
    found = {status.name for status in LocalStorage(two_tenants / "a").list_below("")}
    assert found == {"door", "folder/door", "folder/file", "inside", "link", "relative"}


def test_a_pipe_is_refused_at_once(tmp_path):
    """A pipe where a file should be neither blocks nor is read."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnsafePath):
        LocalStorage(tmp_path).read("pipe")


def test_only_regular_files_beneath_a_folder_are_opened(two_tenants):
    """A plain file opens; a link, a way out, a folder and a pipe are refused at once, also for appending."""
    own = two_tenants / "a"
    os.mkfifo(own / "pipe")
    with open_regular(own, "folder/file") as file:
        assert file.read() == b"own"
    with open_regular(own, "folder/file", appending=True) as file:
        file.write(b"!")
    assert (own / "folder" / "file").read_bytes() == b"own!"
    for name in ("link", "inside", "door/secret", "../b/secret", "folder", "pipe"):
        for appending in (False, True):
            with pytest.raises(OSError), open_regular(own, name, appending=appending):  # noqa: PT011
                pass


def test_nothing_is_removed_through_a_link(two_tenants):
    """A link goes itself; what lies behind one stays."""
    remove_beneath(two_tenants / "a", "link")
    remove_beneath(two_tenants / "a", "nothing/at/all")
    for name in ("door/secret", "../b/secret"):
        with pytest.raises(OSError):  # noqa: PT011
            remove_beneath(two_tenants / "a", name)
    assert (two_tenants / "b" / "secret").read_bytes() == CANARY
    assert not (two_tenants / "a" / "link").is_symlink()
