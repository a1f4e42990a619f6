"""Invented names, ids and times from a given random source."""

from __future__ import annotations

import string
from datetime import UTC, date, datetime, timedelta
from random import Random

# "Null", "NA" and "True" are names that people have and that careless readers lose.
FIRST_NAMES = (
    "Ada",
    "Bilal",
    "Chioma",
    "Dagny",
    "Eun-ji",
    "Fitz",
    "Gaël",
    "Hana",
    "Ivo",
    "Jun",
    "NA",
    "True",
)
LAST_NAMES = ("Null", "O'Brien", "Vasquez", "Ågren", "Nakamura", "Osei", "Plum", "Quist", "Rao", "Sørensen")
COMPANIES = (
    "Brightloom Analytics",
    "Harbor & Pine Logistics",
    "Quillstack, Inc.",
    "Tallyhouse Cooperative",
    'The "Good" Ledger Company',
    "Übersee Kontor GmbH",
    "Wrenfield Robotics",
    "Marrow Lane Bakery",
)
TOWNS = (
    ("Fernhollow", "MA", "01002", "USA"),
    ("Port Cassel", "NY", "00501", "USA"),
    ("Ottersby", "ME", "04101", "USA"),
    ("Swakop Rand", "", "09000", "NA"),
    ("Lindenau", "", "04177", "DE"),
)
PRODUCTS = ("Onboarding day", "Seat, monthly", "Data connector", "Support hours", "Audit export")
ACCOUNTS = (
    ("1000", "Checking", "Bank"),
    ("1200", "Accounts Receivable (A/R)", "Accounts Receivable"),
    ("4000", "Subscription Income", "Income"),
    ("4010", "Services Income", "Income"),
    ("6100", "Hosting", "Expenses"),
    ("6200", "Travel, Meals", "Expenses"),
)

_ID_LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits
_CHECK_LETTERS = string.ascii_uppercase + "012345"


def crm_id(random: Random, prefix: str) -> str:
    """An 18-letter id as CRM systems make them: 15 letters in both cases, 3 that repeat which are upper."""
    body = prefix + "".join(random.choices(_ID_LETTERS, k=15 - len(prefix)))
    checks = ""
    for start in (0, 5, 10):
        bits = sum(1 << place for place, letter in enumerate(body[start : start + 5]) if letter.isupper())
        checks += _CHECK_LETTERS[bits]
    return body + checks


def long_number(random: Random, digits: int = 20) -> str:
    """An id of digits only, too long for any integer type and often with a zero in front."""
    return "0" + "".join(random.choices(string.digits, k=digits - 1))


def moment(random: Random, first: date, days: int) -> datetime:
    """A UTC moment, with microseconds, within ``days`` from ``first``."""
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    return start + timedelta(microseconds=random.randrange(days * 86_400_000_000))


def utc_text(when: datetime) -> str:
    """The moment as taps write it: ``2026-09-30T14:05:07.123456Z``."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def money(random: Random, least: int, most: int) -> str:
    """An amount between two whole numbers with two decimals, as text."""
    cents = random.randrange(least * 100, most * 100)
    return f"{cents // 100}.{cents % 100:02d}"
