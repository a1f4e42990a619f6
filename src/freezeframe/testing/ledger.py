"""A general ledger report as accounting taps leave it: 45 columns, odd names, and no key.

Two lines of a report may be equal in every column, so nothing identifies a row; a later sync
sends the whole report again for a window of dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from random import Random

from freezeframe.testing.invented import ACCOUNTS, COMPANIES, PRODUCTS, long_number, moment, money

COLUMNS = tuple(
    """
    Date TransactionType TransactionTypeId Num Adj CreateDate CreatedBy LastModified LastModifiedBy
    Name NameId Customer CustomerId Vendor VendorId Employee EmployeeId Location LocationId
    Product/Service Product/ServiceId Memo Qty Rate Account# Account AccountId Split InvoiceDate
    A/RPaid A/PPaid Clr CheckPrinted Debit Credit OpenBalance Amount TaxName TaxAmount TaxableAmount
    Klass KlassId Class ClassId Categories
    """.split()  # noqa: SIM905 - a line for each name would hide the rest
)
_TWIN_EVERY = 12  # every so many lines the one before comes once more, as bank fees do

FIRST_DAY = date(2026, 7, 1)
WINDOW_START = date(2026, 9, 1)
LAST_DAY = date(2026, 9, 30)

Row = dict[str, str]


def full(random: Random, count: int) -> list[Row]:
    """``count`` lines from ``FIRST_DAY`` to ``LAST_DAY``, by date."""
    rows: list[Row] = []
    for number in range(count):
        if number % _TWIN_EVERY == _TWIN_EVERY - 1:
            rows.append(dict(rows[-1]))
        else:
            rows.append(_line(random, number, FIRST_DAY, (LAST_DAY - FIRST_DAY).days + 1))
    return sorted(rows, key=lambda row: row["Date"])


def incremental(random: Random, known: Sequence[Row], new: int) -> list[Row]:
    """The window from ``WINDOW_START`` on as it is now: corrected, booked away, and ``new`` lines added."""
    window = [row for row in known if row["Date"] >= WINDOW_START.isoformat()]
    kept = [dict(row) for number, row in enumerate(window) if number % 9 != 0]
    for row in kept[::7]:
        row["Amount"] = money(random, 1, 2000)
        row["Memo"] = "corrected, see note"
    days = (LAST_DAY - WINDOW_START).days + 6
    added = [_line(random, len(known) + number, WINDOW_START, days) for number in range(new)]
    return sorted(kept + added, key=lambda row: row["Date"])


def _line(random: Random, number: int, first: date, days: int) -> Row:
    day = first + timedelta(days=random.randrange(days))
    code, account, category = random.choice(ACCOUNTS)
    company = random.randrange(len(COMPANIES))
    created = moment(random, day, 1).strftime("%Y-%m-%dT%H:%M:%S-0700")
    amount = money(random, 1, 2000)
    is_debit = random.random() < 0.5  # noqa: PLR2004 - half of a ledger
    row = {
        **dict.fromkeys(COLUMNS, ""),
        "Date": day.isoformat(),
        "TransactionType": random.choice(("Invoice", "Payment", "Bill Payment (Check)", "Expense")),
        "TransactionTypeId": str(number + 1),
        "Num": random.choice(("", f"ACH-{number:04d}", f"{number:05d}")),
        "Adj": "No",
        "CreateDate": created,
        "CreatedBy": "Dagny Plum",
        "LastModified": created,
        "LastModifiedBy": "Dagny Plum",
        "Memo": random.choice(("", "monthly fee", 'as agreed, "net 30"')),
        "Account#": code,
        "Account": account,
        "AccountId": str(int(code) // 10),
        "Split": random.choice(("-Split-", "Accounts Receivable (A/R)")),
        "InvoiceDate": "0-00-00",
        "Debit": amount if is_debit else "",
        "Credit": "" if is_debit else amount,
        "OpenBalance": ".00",
        "Amount": amount if is_debit else f"-{amount}",
        "Categories": str([category, account]),
    }
    if category == "Income":
        name = COMPANIES[company]
        row |= {"Name": name, "NameId": str(company + 1), "Customer": name, "CustomerId": str(company + 1)}
        row |= {
            "Product/Service": random.choice(PRODUCTS),
            "Qty": "1.00",
            "Rate": amount,
            "A/RPaid": "Unpaid",
        }
        row |= {"Class": "North, West", "ClassId": long_number(random)}
    return row
