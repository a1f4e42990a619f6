"""What a request with an Idempotency-Key is called: the name of what it makes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

JOB_PREFIX = "request-"


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """Principal, Idempotency-Key and target of a request; ``target`` is its method and its path."""

    principal: str
    key: str
    target: str

    @property
    def job_id(self) -> str:
        """The job id of the version that the request makes: no one else's key and no other route has it."""
        text = json.dumps([self.principal, self.key, self.target])
        return f"{JOB_PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:32]}"
