"""Classic Spark, where the script started it."""

from typing import Any, Self

from pyspark.sql.connect.session import SparkSession

from freezeframe.engine.configuration import session_configuration, session_options
from freezeframe.engine.connect import Connection
from freezeframe.settings import Settings


class ClassicConnection(Connection):
    """A session beside the script's own one, in the Spark that the script started."""

    @classmethod
    def beside(cls, session: Any, settings: Settings) -> Self | None:
        """Open a session beside the script's own one; None if its Spark was stopped."""
        if not cls(session, None).is_alive():
            return None
        own, master = session.newSession(), session.conf.get("spark.master")
        options = {**session_configuration(master), **session_options(settings, master)}
        for name, value in options.items():
            own.conf.set(name, value)
        return cls(own, None)

    def __post_init__(self) -> None:
        """Nothing has to be closed at the end of the interpreter."""

    def is_alive(self) -> bool:
        """Return whether the script has not stopped Spark."""
        try:
            self.session.range(1)  # a plan only, for which PySpark asks a running Spark for its cores
        except Exception:  # noqa: BLE001 - of Python, of Spark or of a Java that is gone
            return False
        return True

    def sees_our_files(self) -> bool:
        """Return whether Spark is in processes of this machine alone; see ``Connection``."""
        return str(self.session.conf.get("spark.master")).startswith("local")

    def takes_keys(self) -> bool:
        """Return True: Spark is this process's."""
        return True

    def is_of_same_server(self, session: Any) -> bool:
        """Return whether a session is of the same Spark."""
        name = "spark.app.id"
        return not isinstance(session, SparkSession) and session.conf.get(name) == self.session.conf.get(name)

    def abandon(self) -> None:
        """Nothing to drop: Spark is the script's."""

    def close(self) -> None:
        """Nothing to release: Spark is the script's."""
