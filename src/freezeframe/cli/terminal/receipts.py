"""Stored receipts and outcomes of jobs as ``--json`` prints them (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def receipt_fields(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """A stream's receipt without ``version``, which equals ``tenant_version``."""
    return {name: value for name, value in receipt.items() if name != "version"}


def outcome_fields(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """A job's outcome, with such receipts."""
    receipt = outcome.get("receipt")
    if receipt is None:
        return dict(outcome)
    streams = {name: receipt_fields(one) for name, one in receipt["streams"].items()}
    return {**outcome, "receipt": {**receipt, "streams": streams}}
