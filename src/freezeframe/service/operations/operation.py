"""What an operation is: a function of a tenant, and what both doors need of it.

The modules of this package are light: a command loads them without the store.
"""

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from freezeframe.identifiers import FilePath, StreamName

if TYPE_CHECKING:
    from freezeframe.service.access.keys import Scope
    from freezeframe.store import Tenant
    from freezeframe.store.model.update_options import Author
    from freezeframe.store.transaction.conditions import Subject

Noun = Literal["tenant", "file", "stream"]
VERSION_MAX = 2**53


@dataclass(frozen=True, slots=True)
class About:
    """What both doors say of a parameter, and its limits, by pydantic's names.

    The command takes a version (``is_point``) as a tag or a moment as well.
    """

    text: str
    limits: Mapping[str, Any]
    is_point: bool = False


def about(text: str, *, is_point: bool = False, **limits: Any) -> About:
    """Return what both doors say of a parameter."""
    return About(text, limits, is_point)


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


class Caller(Protocol):
    """Who calls an operation: a request's principal, or the local user."""

    @property
    def who(self) -> str:
        """The caller as histories show it."""

    def author(self, message: str) -> "Author":
        """Return who makes a change and why; a reason that is required must not be missing."""

    def tenant(self, scope: "Scope", subject: "Subject") -> "Tenant":
        """Return the tenant, if the caller has ``scope`` there; its commits keep the call's conditions."""

    def audit_change(self, action: str, *subjects: str, **details: Any) -> AbstractContextManager[Any]:
        """Open a ``with`` block for a change; its audit entry is durable before it begins."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A change of a tenant or of the service, or (without ``action``) a read, and where it is called.

    ``action`` is what the audit calls it, ``routes`` the ids of its operations in the API, ``commands`` the
    words of its commands. With ``run`` its route is made from it, by ``method``, ``path`` below the tenant,
    ``status`` and ``body`` (the name of its model); and its command, unless that is by hand. ``scope`` is the
    right that it needs, ``details`` the parameters that the audit has beside the first, and ``noun`` what a
    request's conditions are about: the first parameter, or the tenant.
    """

    action: str
    routes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    run: Callable[..., Any] | None = None
    scope: "Scope" = "admin"
    method: str = ""
    path: str = ""
    status: int = 200
    body: str = ""
    noun: Noun = "tenant"
    details: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """Its parameters; the function gets the tenant and the caller's name before them."""
        return tuple(inspect.signature(self.run).parameters.values())[2:] if self.run else ()

    @property
    def result(self) -> Any:
        """The class of its result, or None."""
        return inspect.signature(self.run).return_annotation if self.run else None

    def call(self, caller: Caller, **values: Any) -> Any:
        """Carry the operation out, with an entry in the audit where it changes something."""
        assert self.run is not None  # noqa: S101 - an operation without it has doors by hand
        kinds = {item.name: described(item)[0] for item in self.parameters}
        # Names are compared in their normal spelling (Unicode NFC), however the caller writes them.
        values = {
            name: kinds[name](value) if kinds[name] in {FilePath, StreamName} else value
            for name, value in values.items()
        }
        name = next((values[item] for item in kinds if item not in self.details and item in values), "")
        tenant = caller.tenant(self.scope, self._subject(name))
        if not self.action:
            return self.run(tenant, caller.who, **values)
        details = {item: values.get(item) for item in self.details}
        with caller.audit_change(self.action, name, **details):
            if "message" in kinds:
                caller.author(values.get("message", ""))
            return self.run(tenant, caller.who, **values)

    def _subject(self, name: str) -> "Subject":
        """Return what the conditions of a request are about."""
        from freezeframe.store.transaction.conditions import TENANT, file_subject, stream_subject

        if self.noun == "tenant":
            return TENANT
        return (file_subject if self.noun == "file" else stream_subject)(name)


def operation(
    method: str, path: str, action: str = "", command: str = "", **others: Any
) -> Callable[[Callable[..., Any]], Operation]:
    """Return a decorator that makes an operation of a function; its name is the id in the API.

    Its docstring describes the operation at both doors.
    """

    def made(run: Callable[..., Any]) -> Operation:
        commands = (command,) if command else ()
        return Operation(action, (run.__name__,), commands, run, method=method, path=path, **others)

    return made
