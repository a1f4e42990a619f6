"""The engine as one object: opened late, closed and opened again, used by threads, asked anew when gone."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from tests.waiting import until

from freezeframe.engine.connect import connect
from freezeframe.engine.spark import SparkEngine
from freezeframe.errors import CorruptData, EngineUnavailable
from freezeframe.log.format.schema import arrow_to_delta

pytestmark = pytest.mark.spark

ROWS = pa.table({"Id": ["1", "2"], "v": [1, 2]})


@pytest.fixture
def engine(spark_settings, spark_engine):
    """Another engine on the run's server, which is up already."""
    engine = SparkEngine(spark_settings)
    yield engine
    engine.close()


def inside(engine, bench, table=ROWS):
    """The positions of the rows of a table, as the engine finds them."""
    return [rows.tolist() for rows in engine.rows_inside(bench.window(table))]


def test_an_unused_engine_has_no_session(spark_settings):
    """To make and close one costs nothing."""
    engine = SparkEngine(spark_settings)
    engine.close()
    assert engine._work._connection is None


def test_a_closed_engine_opens_again(bench, engine):
    """close() lets go of its connection, not of the process's session; a later call opens another one."""
    first, session = engine._work.connection(), engine.session
    engine.close()
    engine.close()
    assert [[0, 1]] == inside(engine, bench)
    assert first is not engine._work.connection()
    assert session is engine.session
    assert session.range(1).count() == 1


def test_a_session_that_the_server_ended_is_replaced(bench, engine):
    """A server that forgot the session is asked anew, unseen by the caller."""
    first = engine._work.connection().session
    first.client.release_session()
    assert [[0, 1]] == inside(engine, bench)
    assert first.session_id != engine._work.connection().session.session_id


def test_searches_share_a_session_and_frames_another(bench, spark_settings):
    """What one process compiled, the next need not; the engines of a process have one session for frames."""
    engines = [SparkEngine(spark_settings) for _ in range(2)]
    for engine in engines:
        inside(engine, bench)
    shared = {engine._work.connection().session.session_id for engine in engines}
    frames = {engine.session.session_id for engine in engines}
    assert (len(shared), len(frames)) == (1, 1)
    assert not shared & frames
    engines[0].close()
    assert [[0, 1]] == inside(engines[1], bench)
    engines[1].close()


def test_threads_share_one_session(bench, engine):
    """Several streams are searched at once, each with its own answer."""
    results = {}

    def update(number):
        table = pa.table({"Id": [str(n) for n in range(number + 1)]})
        results[number] = inside(engine, bench, table)

    tasks = [threading.Thread(target=update, args=(number,)) for number in range(4)]
    for thread in tasks:
        thread.start()
    for thread in tasks:
        thread.join()
    assert {number: [list(range(number + 1))] for number in range(4)} == results


def test_a_read_is_lazy_and_has_the_schema(bench, engine):
    """Columns, order and types are those asked for; a column that no file has is null."""
    path = bench.file(ROWS)
    asked = arrow_to_delta(pa.schema({"late": pa.date32(), "v": pa.int64(), "Id": pa.string()}))
    frame = engine.read((path,), asked)
    assert frame.dtypes == [("late", "date"), ("v", "bigint"), ("Id", "string")]
    assert {tuple(row) for row in frame.collect()} == {(None, 1, "1"), (None, 2, "2")}


def test_a_read_of_no_files_is_empty(engine):
    """A stream without rows has its columns still."""
    frame = engine.read((), arrow_to_delta(ROWS.schema))
    assert (frame.dtypes, frame.collect()) == ([("Id", "string"), ("v", "bigint")], [])


def test_a_damaged_file_is_damage(bench, engine):
    """Bytes that are not Parquet are told as such, and the file is named."""
    task = bench.window(ROWS, "v > 0")
    path = Path(task.stored[0])
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CorruptData):
        engine.rows_inside(task)


def test_a_shared_folder_is_asked_for_once(engine, tmp_path):
    """The second question is answered from memory: the folder need not even be there."""
    folder = tmp_path / "tenant"
    folder.mkdir()
    # As if another process had removed an old answer after it was listed.
    (engine._memory() / "old.shared").symlink_to("gone")
    engine.require_shared(str(folder))
    assert list(folder.iterdir()) == []
    folder.rmdir()
    engine.require_shared(str(folder))


def test_another_file_system_is_not_probed(spark_settings):
    """An object store is shared by its nature; nothing is started to ask."""
    engine = SparkEngine(spark_settings)
    engine.require_shared("s3a://bucket/tenant")
    assert engine._work._connection is None


def test_a_private_server_serves_its_process_and_goes(spark_settings, spark_state):
    """FREEZEFRAME_SPARK=local: a server of this process alone; closed, no process or folder is left of it."""
    state = spark_state
    engine = SparkEngine(spark_settings.model_copy(update={"spark": "local", "state_dir": state}))
    assert engine._work.connection().session.range(2).count() == 2
    process = engine._work._connection.attachment.address.process
    session = connect(engine._settings, print, is_process=True)
    assert process == session.attachment.address.process
    session.close()
    made = [path for path in state.iterdir() if not path.is_symlink()]
    assert [path.name.partition("-")[0] for path in made] == ["private"]
    engine.close()
    until(lambda: not list(state.glob("private-*")))
    assert not Path(f"/proc/{process}").exists()


def test_a_server_elsewhere_that_is_gone_is_told(spark_settings, monkeypatch):
    """A server that is not ours is asked again for some seconds, then the error says so alone."""
    monkeypatch.setattr("freezeframe.engine.connect._RETRIES_MAX", 2)
    elsewhere = spark_settings.model_copy(update={"spark": "sc://localhost:1"})
    with pytest.raises(EngineUnavailable, match="does not answer"):
        SparkEngine(elsewhere).run([len])
