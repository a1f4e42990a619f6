"""How warm servers stand, and their end. Java here is a script that only listens, so no Spark is started."""

import os
import threading
import time
from pathlib import Path

import pytest
from tests.listening_java import use_listener
from tests.waiting import until

from freezeframe.engine.java import find_java
from freezeframe.engine.server.launch import class_archive
from freezeframe.engine.server.server import attach, follow_lines, keep_idle, running_servers, stop
from freezeframe.errors import InvalidOption
from freezeframe.settings import Settings


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Settings of servers of this test alone, whose Java is the listener."""
    use_listener(tmp_path, monkeypatch)
    settings = Settings(state_dir=tmp_path / "state", spark_idle_seconds=60)
    yield settings
    for server in running_servers(settings):
        stop(server, 20, at_once=True)


def test_a_server_is_told_with_who_uses_it(own):
    """Port, process, memory, settings; as many clients as hold it, and idle only when none does."""
    assert running_servers(own) == []
    attachment = attach(own, "local[1]", lambda _: None)
    second = attach(own, "local[1]", lambda _: None)
    (server,) = running_servers(own)
    assert (attachment.address.port, attachment.address.process) == (server.port, server.process)
    assert ("local[1]", own.spark_memory, False) == (server.master, server.spark_memory, server.is_retiring)
    assert (server.clients, server.idle_seconds) == (2, 0.0)
    assert server.memory_bytes > 1024 * 1024
    assert attachment.address.token not in str(server.to_json())
    second.close()
    attachment.close()
    until(lambda: running_servers(own)[0].clients == 0)
    assert running_servers(own)[0].idle_seconds < 60


def test_a_server_in_use_stops_when_its_last_client_leaves(own):
    """Asked to stop it says that it is still used, and no client is cut off; asked at once it is."""
    attachment = attach(own, "local[1]", lambda _: None)
    (server,) = running_servers(own)
    assert not stop(server, 5)
    assert running_servers(own)[0].is_retiring
    attachment.close()
    until(lambda: not running_servers(own))
    attachment = attach(own, "local[1]", lambda _: None)
    assert stop(running_servers(own)[0], 20, at_once=True)
    attachment.close()
    assert running_servers(own) == []


def test_a_server_stays_as_long_as_it_is_told_to(own):
    """The time is changed while it runs, without another server; no time at all is refused."""
    impatient = own.model_copy(update={"spark_idle_seconds": 1})
    attachment = attach(impatient, "local[1]", lambda _: None)
    keep_idle(attachment.folder, 600)
    attachment.close()
    time.sleep(1.5)
    (server,) = running_servers(own)
    assert attachment.address.process == server.process
    with pytest.raises(InvalidOption, match="0 seconds"):
        keep_idle(attachment.folder, 0)


def test_other_settings_replace_the_server(own):
    """The one with the old settings retires; the new one is the first in the list."""
    attach(own, "local[1]", lambda _: None).close()
    (old,) = running_servers(own)
    other = own.model_copy(update={"spark_memory": "2g"})
    attach(other, "local[1]", lambda _: None).close()
    assert running_servers(own)[0].spark_memory == "2g"
    until(lambda: [old.process] != [server.process for server in running_servers(own)][-1:])
    assert [server.spark_memory for server in running_servers(own)] == ["2g"]


def test_a_class_archive_that_java_cannot_use_costs_no_start(own):
    """It is removed, and the server starts without it."""
    own.state_dir.mkdir(mode=0o700)
    archive = class_archive(own.state_dir, find_java())
    archive.write_text("broken")
    attachment = attach(own, "local[1]", lambda _: None)
    attachment.close()
    assert not archive.exists()
    assert len(running_servers(own)) == 1


def test_a_log_is_followed_into_the_next_servers(tmp_path):
    """Lines that come later are told as they come; a new file under the name is gone over to."""
    log = tmp_path / "server.log"
    log.write_text("one\n")
    assert list(follow_lines(log, follow=False)) == ["one\n"]
    lines = follow_lines(log, follow=True)
    assert next(lines) == "one\n"
    told = []
    reader = threading.Thread(target=lambda: told.append(next(lines)), daemon=True)
    reader.start()
    log.unlink()
    log.write_text("two\n")
    reader.join(20)
    assert told == ["two\n"]
    lines.close()


def test_a_server_keeps_nothing_of_the_job_that_started_it(own, monkeypatch):
    """What names the tenant, or opens its door, is not in the environment of a server for all."""
    monkeypatch.setenv("API_KEY", "a key of acme's")
    monkeypatch.setenv("TENANT", "acme")
    attachment = attach(own, "local[1]", lambda _: None)
    environment = Path(f"/proc/{attachment.address.process}/environ").read_bytes()
    names = {entry.partition(b"=")[0] for entry in environment.split(b"\0")}
    attachment.close()
    assert b"PATH" in names
    assert names & {b"API_KEY", b"TENANT"} == set()
    assert os.environ["TENANT"] == "acme"
