"""The REST service's face: routes, requests and answers over ``freezeframe.service``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freezeframe.lazy_names import lazy_names

if TYPE_CHECKING:
    from freezeframe.asgi.application import create_application

__all__ = ["create_application"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {"create_application": ".application"})
