"""Route class that refuses what an operation does not know and would ignore: parameters, conditions."""

from __future__ import annotations

from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Header, Query

from freezeframe.asgi.dependencies.checked_route import CheckedRoute, Handler
from freezeframe.errors import InvalidOption

_READING = frozenset({"GET", "HEAD"})
_CONDITIONS = frozenset({"if-match", "if-none-match"})
_PARAMETERS_MAX = 1000
_TOLD_LETTERS_MAX = 100


class StrictRoute(CheckedRoute):
    """A route of the API; a request with a parameter that the operation does not know is refused."""

    def get_route_handler(self) -> Handler:
        """See ``APIRoute.get_route_handler``."""
        inner = super().get_route_handler()
        fields = get_flat_params(self.dependant)
        known = frozenset(one.alias for one in fields if isinstance(one.field_info, Query))
        headers = {one.alias for one in fields if isinstance(one.field_info, Header)}
        ignored = () if _READING.intersection(self.methods or ()) else tuple(_CONDITIONS - headers)

        async def handle(request: Request) -> Response:
            if request.scope["query_string"]:
                require_known(request.scope["query_string"], known)
            for name in ignored:
                if name in request.headers:
                    raise _ignored_condition(name)
            return await inner(request)

        return handle


def _ignored_condition(name: str) -> InvalidOption:
    return InvalidOption(
        f"This operation does not know {name}.",
        cause="The change would be made whether the condition holds or not.",
        remedy="Leave the header out; /openapi.json names the operations that know it.",
        code="INVALID_REQUEST",
    )


def require_known(query: bytes, known: frozenset[str]) -> None:
    """Refuse a query with a parameter that is not among the known ones.

    Raises:
        InvalidOption: there is one, or there are too many to look at.
    """
    try:
        given = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=_PARAMETERS_MAX)
    except ValueError:
        raise InvalidOption(
            "The query has too many parameters.",
            cause=f"At most {_PARAMETERS_MAX:,} are looked at.",
            remedy="Ask in several requests.",
            code="INVALID_REQUEST",
        ) from None
    odd = next((name for name, _ in given if name not in known), None)
    if odd is not None:
        raise InvalidOption(
            f"There is no parameter {odd[:_TOLD_LETTERS_MAX]!r} here.",
            cause=f"The operation's parameters are: {', '.join(sorted(known)) or 'none'}.",
            remedy="Correct its name, or leave it out; it would change nothing.",
            code="INVALID_REQUEST",
        )
