"""Audit entries of commands that change the service's keys and people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from freezeframe.cli.places.control_place import Control, control

if TYPE_CHECKING:
    from freezeframe.service.access.audit import Audit, AuditedOperation


def command_principal() -> str:
    """The principal of a command, for the audit."""
    from freezeframe.store.model.system_user import system_user

    return f"command:{system_user()}"


@dataclass(frozen=True, slots=True)
class AuditedControl:
    """An open control database with its audit."""

    control: Control
    audit: Audit
    pepper: bytes = field(repr=False)

    def audit_change(
        self, action: str, subject: str = "", **details: Any
    ) -> AbstractContextManager[AuditedOperation]:
        """A ``with`` block for a change of keys or people, entered after its audit entry is durable."""
        from freezeframe.service.access.audit_entry import AuditPlace

        who = {"principal": command_principal(), "action": action, "request_id": ""}
        return self.audit.operation(AuditPlace(), (subject,), details=details, **who)


@contextmanager
def opened_audit(
    root: str, environment: str | None = None, *, create: bool = False
) -> Iterator[AuditedControl]:
    """The control database of the store at ``root`` and the audit in it; see ``control``.

    When the block ends, the sink has been sent each entry.
    """
    from freezeframe.service.access.audit import Audit
    from freezeframe.service.access.audit_entry import AuditKeys
    from freezeframe.service.access.audit_sink import audit_sink
    from freezeframe.service.identity.pepper import load_pepper

    with control(root, environment, create=create) as found:
        pepper = load_pepper(found.settings, root)
        sink = audit_sink(found.settings)
        with closing(sink) if sink else nullcontext():
            audit = Audit(found.database, AuditKeys.of(pepper), sink)
            audit.seal(command_principal())
            yield AuditedControl(found, audit, pepper)
