"""Classic Spark, where the script started it: the one place that looks at what Connect does not have."""

from typing import Any, Self

from freezeframe.engine.configuration import session_configuration, session_options
from freezeframe.engine.connect import Connection
from freezeframe.settings import Settings


class ClassicConnection(Connection):
    """A session beside the script's own one, in the Spark that the script started."""

    @classmethod
    def beside(cls, session: Any, settings: Settings) -> Self | None:
        """Open a session beside the script's own one; None if its Spark was stopped."""
        context = session.sparkContext
        if context._jsc is None:  # noqa: SLF001 - PySpark looks there as well
            return None
        own = session.newSession()
        options = {**session_configuration(context.master), **session_options(settings, context.master)}
        for name, value in options.items():
            own.conf.set(name, value)
        return cls(own, None)

    def __post_init__(self) -> None:
        """Nothing has to be closed at the end of the interpreter."""

    def is_alive(self) -> bool:
        """Return whether the script has not stopped Spark."""
        context: Any = self.session.sparkContext
        return context._jsc is not None  # noqa: SLF001

    def sees_our_files(self) -> bool:
        """Return whether Spark is in processes of this machine alone; see ``Connection``."""
        context: Any = self.session.sparkContext
        return str(context.master).startswith("local")

    def takes_keys(self) -> bool:
        """Return True: Spark is this process's."""
        return True

    def is_of_same_server(self, session: Any) -> bool:
        """Return whether a session is of the same Spark."""
        return getattr(session, "_sc", None) is self.session.sparkContext

    def abandon(self) -> None:
        """Nothing to drop: Spark is the script's."""

    def close(self) -> None:
        """Nothing to release: Spark is the script's."""
