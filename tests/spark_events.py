"""What a Spark server did, by its own log of events."""

import json


def logging_events(folder):
    """A folder for ``SPARK_CONF_DIR``: a server that is started with it logs its events below ``folder``."""
    (folder / "events").mkdir()
    options = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    conf = folder / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in options.items()))
    return conf


def events(folder, kind):
    """The events of a kind so far, in order, such as ``JobStart``; a line half written is none yet."""
    (log,) = (folder / "events").iterdir()
    whole = log.read_text().rpartition("\n")[0].splitlines()
    found = (json.loads(line) for line in whole)
    return [event for event in found if event["Event"] == f"SparkListener{kind}"]
