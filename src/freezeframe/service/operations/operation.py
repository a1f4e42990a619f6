"""What an operation is: a function of its caller, and what both doors need of it.

The modules of this package are light: a command loads them without the store.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from freezeframe.identifiers import EnvironmentName, FilePath, StreamName, TenantId

if TYPE_CHECKING:
    from freezeframe.store import Tenant
    from freezeframe.store.transaction.conditions import Subject

Noun = Literal["tenant", "file", "stream", "absent"]
Place = Literal["tenant", "job", "environment", "service"]
VERSION_MAX = 2**53


@dataclass(frozen=True, slots=True)
class About:
    """What both doors say of a parameter, and its limits, by pydantic's names.

    The command takes a version (``is_point``) as a tag or a moment as well; it has another ``flag`` than the
    parameter's name, or (``is_argument``) takes it without a flag though it may be left out.
    """

    text: str
    limits: Mapping[str, Any]
    is_point: bool = False
    is_argument: bool = False
    flag: str = ""


def about(
    text: str = "", *, is_point: bool = False, is_argument: bool = False, flag: str = "", **limits: Any
) -> About:
    """Return what both doors say of a parameter."""
    return About(text, limits, is_point, is_argument, flag)


def example(**members: Any) -> Any:
    """Return the configuration of a model with one example."""
    return {"json_schema_extra": {"examples": [members]}}


def described(parameter: inspect.Parameter) -> tuple[Any, About]:
    """Return the type of a parameter, and what is said of it."""
    return parameter.annotation.__origin__, parameter.annotation.__metadata__[0]


NamedFile = Annotated[
    FilePath, about("The file's path.", min_length=1, max_length=800, examples=["mappings/a.csv"])
]
NamedStream = Annotated[
    StreamName, about("The stream's name.", min_length=1, max_length=200, examples=["Account"])
]
Message = Annotated[str, about("Why, for the history.", max_length=1000)]
Limit = Annotated[int, about("How many at most.", ge=1, le=1000)]
Cursor = Annotated[str | None, about("`next_cursor` of the page before.", max_length=4000)]
SeenVersion = Annotated[
    int | None, about("A version of the tenant; the newest without it.", ge=0, le=VERSION_MAX)
]
AsOf = Annotated[datetime | None, about("A moment (RFC 3339); UTC without a zone.")]


def seen_version(tenant: "Tenant", version: int | None, as_of: datetime | str | None) -> int:
    """Return the version that a read names by its number or by a moment, or the newest."""
    from freezeframe.store.tenant_log.history import require_one_version

    require_one_version({"version": version, "as_of": as_of})
    newest = tenant.version
    if newest < 0 or version is not None:
        return newest if version is None else version
    return newest if as_of is None else tenant.at(as_of).version


@dataclass(frozen=True, slots=True)
class Operation:
    """A change of a tenant or of the service, or (without ``action``) a read, and where it is called.

    ``action`` is what the audit calls it, ``routes`` the ids of its operations in the API, ``commands`` the
    words of its commands. With ``run`` its route (if it has a ``method``) and its command (unless that is by
    hand) are made from it. Its ``path`` is below its ``place``: a tenant, which the function gets opened, a
    tenant for its jobs, an environment, or the service. ``scope`` is the right that it needs. ``body`` is
    the name of its model, which may have an ``example``; ``headers`` are filled from the result.

    The audit has the first parameter and the ``details``; ``check`` refuses a name before the entry is
    written, and with ``audits_itself`` the function opens it. ``noun`` is what a request's conditions are
    about: the first parameter, the tenant, or (``absent``) all ``streams`` and ``files`` if they are that
    there is none. Of a list the command shows these ``columns``, or where it is empty the sentence ``empty``.
    """

    action: str
    routes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    run: Callable[..., Any] | None = None
    scope: str = "admin"
    method: str = ""
    path: str = ""
    place: Place = "tenant"
    tag: str = ""
    status: int = 200
    body: str = ""
    example: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    noun: Noun = "tenant"
    details: tuple[str, ...] = ()
    check: Callable[[Any, str], Any] | None = None
    audits_itself: bool = False
    columns: tuple[str, ...] = ()
    empty: str = ""

    @property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """Its parameters, without the tenant, the caller and the environment, which it gets before them."""
        if self.run is None:
            return ()
        found = tuple(inspect.signature(self.run).parameters.values())
        return found[2 if self.place in {"tenant", "environment"} else 1 :]

    @property
    def result(self) -> Any:
        """The class of its result, or None."""
        return inspect.signature(self.run).return_annotation if self.run else None

    def call(self, caller: Any, environment: EnvironmentName | None = None, **values: Any) -> Any:
        """Carry the operation out, with an entry in the audit where it changes something."""
        assert self.run is not None  # noqa: S101 - an operation without it has doors by hand
        kinds = {item.name: described(item)[0] for item in self.parameters}
        # Names are compared in their normal spelling (Unicode NFC), however the caller writes them.
        values = {name: _normal(kinds[name], value) for name, value in values.items()}
        first = next(iter(kinds), "")
        name = "" if first in self.details else values.get(first) or ""
        # A dry run needs no more than a read, and its conditions hold now or never.
        is_dry_run = self.place == "tenant" and bool(values.get("dry_run"))
        if self.place == "tenant":
            subject = self._subject(caller, name, values)
            tenant = caller.tenant("snapshots:read" if is_dry_run else self.scope, subject)
            if is_dry_run:
                replace(caller.conditions, strict=False).require_now(subject, tenant.context)
            given: tuple[Any, ...] = (tenant, caller)
        else:
            for scope in self.scope.split():
                caller.require(scope)
            given = (caller,) if self.place != "environment" else (caller, environment)
        if not self.action or self.audits_itself or is_dry_run:
            return self.run(*given, **values)
        if self.check is not None:
            self.check(caller, name)
        if "message" in kinds:
            caller.author(values.get("message") or "")
        with caller.audit_change(
            self.action, name, **{item: values.get(item) for item in self.details}
        ) as change:
            done = self.run(*given, **values)
            change.outcome = "" if getattr(done, "committed", True) else "unchanged"
        return done

    def _subject(self, caller: Any, name: str, values: Mapping[str, Any]) -> "Subject":
        """Return what the conditions of a request are about."""
        from freezeframe.store.transaction.conditions import TENANT, any_subject, file_subject, stream_subject

        if self.noun == "absent" and caller.conditions.if_none_match is not None:
            named = (values.get("streams") or (), values.get("files") or ())
            return any_subject(*named) if any(named) else TENANT
        subjects = {"file": file_subject, "stream": stream_subject}
        return subjects[self.noun](name) if self.noun in subjects else TENANT


def _normal(kind: Any, value: Any) -> Any:
    """Return a name as it is stored; what is no name, or is left out, as it is."""
    for name in (kind, *get_args(kind)):
        if name in {FilePath, StreamName, TenantId} and value is not None:
            return name(value)
    return value


def operation(
    route: str, scope: str, action: str = "", command: str = "", **others: Any
) -> Callable[[Callable[..., Any]], Operation]:
    """Return a decorator that makes an operation of a function; its name is the id in the API.

    ``route`` is a method and a path. The docstring describes the operation at both doors. Without a route it
    has a command alone.
    """
    method, _, path = route.partition(" ")

    def made(run: Callable[..., Any]) -> Operation:
        commands, routes = (command,) if command else (), (run.__name__,) if method else ()
        return Operation(action, routes, commands, run, scope, method=method, path=path, **others)

    return made
