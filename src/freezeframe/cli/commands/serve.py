"""`freezeframe serve`: the REST service of a store."""

from __future__ import annotations

import fcntl
import gc
import os
import socket
import sys
import tempfile
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.options import Json, LogFormatOption, LogLevelOption, StoreRoot, begin_logging
from freezeframe.cli.output import Output
from freezeframe.errors import InvalidOption
from freezeframe.extras import requires_extra

if TYPE_CHECKING:
    import uvicorn


_SERVED_ROOT = "FREEZEFRAME_SERVED_ROOT"
_METRICS = "PROMETHEUS_MULTIPROC_DIR"
_STOP_SECONDS = 30
_KEEP_ALIVE_SECONDS = 30
# A process that does not answer its parent for so long is replaced. uvicorn's five seconds ended processes
# that only waited for a processor: on a busy machine none came to serve.
_HANGS_SECONDS = 120
# Connections and requests of a process; more are answered with 503. Half requests are a proxy's to end.
_CONNECTIONS_MAX = 4000
_GARBAGE_OBJECTS = 20_000


def serve(
    root: StoreRoot,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")] = 8750,
    workers: Annotated[
        int | None, typer.Option(min=1, max=64, help="Number of worker processes (default: one per core).")
    ] = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    as_json: Json = False,
) -> None:
    """Serve a store's tenants over HTTP.

    It stops at SIGTERM or SIGINT, when all that is under way is answered. On loopback it prints a link that
    signs in once, as an administrator, within a day. Keys are made by freezeframe key create; jobs are run
    by freezeframe worker.
    """
    from freezeframe.storage.local import keep_private
    from freezeframe.storage.read_ahead import processors

    keep_private()
    begin_logging(log_format, log_level, root)
    output, count = Output(as_json=as_json), workers or processors()
    with tempfile.TemporaryDirectory(prefix="freezeframe-metrics-") as metrics:
        # Set before prometheus-client is loaded, which reads it only then.
        if count > 1:
            os.environ[_METRICS] = metrics
        os.environ[_SERVED_ROOT] = root
        # Opened once here, so that errors of the store are reported now and workers do not race to upgrade.
        link = _require_servable(root)
        app = application() if count == 1 else f"{__name__}:application"
        _run(_config(app, host, port, count), metrics, root, output, link)


def _require_servable(root: str) -> str | None:
    """Open everything that the service needs, and warn of open configurations.

    Returns the secret of the link that is printed on loopback; None behind a proxy (``service_url``).
    """
    with requires_extra("service"):
        from freezeframe.control.database import ControlDatabase, database_url
        from freezeframe.service.access.access import unsealed_configurations
        from freezeframe.service.service import open_service
    from freezeframe.settings import load_settings

    settings = load_settings(root=root)
    database = ControlDatabase.open(database_url(settings, root))
    try:
        service = open_service(root, settings, database)
        found = next(unsealed_configurations(service.stores), None)
        link = None if settings.service_url else service.tickets.link()
    finally:
        database.close()
    if found is not None:
        typer.echo(
            f"Warning: {found} is not sealed: every reader of the store's files can read it. "
            "Set a master key, and write it again with --sealed.",
            err=True,
        )
    return link


def application() -> object:
    """Return the application that a worker runs, of the store that ``serve`` was started for."""
    from freezeframe.asgi.application import create_application
    from freezeframe.control.database import ControlDatabase, database_url
    from freezeframe.observation import configure_logging
    from freezeframe.settings import load_settings

    root = os.environ[_SERVED_ROOT]
    settings = load_settings(root=root)
    configure_logging(settings.log_format, settings.log_level)
    made = create_application(settings, root, ControlDatabase.open(database_url(settings, root)))
    # Loaded modules stay, and tenants' states live long: traversing all of them for
    # garbage after every few hundred objects would delay every hundredth response.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_OBJECTS, 20, 100)
    return made


def _config(app: object, host: str, port: int, workers: int = 1) -> uvicorn.Config:
    import uvicorn

    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # an application, or where it is made
        host=host,
        port=port,
        workers=workers,
        factory=isinstance(app, str),
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        limit_concurrency=_CONNECTIONS_MAX,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
        timeout_worker_healthcheck=_HANGS_SECONDS,
    )


def _require_free(host: str, port: int) -> None:
    """Raise InvalidOption if the service cannot listen at the address."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
    except OSError as error:
        raise InvalidOption(
            f"The service cannot listen at {host}:{port}.",
            cause=error.strerror or str(error),
            remedy="Stop what listens there, or choose another address: --host, --port (0: a free port).",
        ) from error


def _run(config: uvicorn.Config, folder: str, root: str, output: Output, link: str | None) -> None:
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    class Processes(Multiprocess):
        def handle_ttou(self) -> None:
            """Do nothing: if a process ended, connections that wait at its socket would not be accepted."""

    _require_free(config.host, config.port)
    # A socket group would let another service join, so the check for a free address uses none.
    with config.bind_socket() as free:
        address, family = free.getsockname(), free.family
    sockets = Listeners(address, family, config.workers, folder)
    host, port = address[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    fields = {"url": url, "root": root, "workers": config.workers, "pid": os.getpid()}
    if link is not None and ip_address(host).is_loopback:
        fields["sign_in"] = f"{url}/sign-in#{link}"
    output.record(fields)
    if config.workers == 1:
        uvicorn.Server(config).run(sockets=sockets)
    else:
        Processes(config, sockets=sockets).run()


# Where all processes accept from one socket, the first to wake takes every connection that waits.
# Connections are kept, so one process did all the work while the others had none, and requests took ten
# times as long.

BACKLOG = 2048
# macOS gives all connections of such a group to one of its sockets.
_IS_SHARED_OUT = sys.platform == "linux"
_claims: list[int] = []


class Listeners(list[socket.socket]):
    """Listening sockets of one address; a process that starts with them claims one for itself."""

    def __init__(self, address: tuple[str, int], family: int, count: int, claims: str) -> None:
        """``claims`` is a folder of this service alone, in which processes note which socket is whose."""
        sockets = [_bind(address, family) for _ in range(count if _IS_SHARED_OUT else 1)]
        super().__init__(sockets)
        for item in sockets:
            item.listen(BACKLOG)  # from now on, connections wait for a process and are not refused
        self._folder = claims

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled for the process that is started; there it is the list of the one socket that it claimed."""
        return claim_socket, (list(self), self._folder)


def claim_socket(sockets: list[socket.socket], folder: str) -> list[socket.socket]:
    """Return the first socket that no living process has claimed, held as long as this one lives.

    A process that starts while all are claimed, as in a rolling restart, gets all of them, so that each
    socket that is released has a listener.
    """
    free = (number for number in range(len(sockets)) if _is_claimed_now(Path(folder, f"listener-{number}")))
    mine = next(free, None)
    if mine is None:
        return sockets
    for number, other in enumerate(sockets):
        if number != mine:
            other.close()
    return [sockets[mine]]


def _is_claimed_now(path: Path) -> bool:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return False
    _claims.append(handle)
    return True


def _bind(address: tuple[str, int], family: int) -> socket.socket:
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if _IS_SHARED_OUT:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made
