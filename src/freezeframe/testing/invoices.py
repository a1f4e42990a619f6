"""Invoices as an accounting tap leaves them: 22 columns, two of them lists of records kept as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from random import Random

from freezeframe.testing.invented import COMPANIES, PRODUCTS, moment, money, utc_text

COLUMNS = tuple(
    """
    AllowIPNPayment AllowOnlinePayment AllowOnlineCreditCardPayment AllowOnlineACHPayment Id
    MetaData__CreateTime MetaData__LastUpdatedTime CustomField DocNumber TxnDate CurrencyRef__value
    CurrencyRef__name CustomerRef__value CustomerRef__name Line FreeFormAddress ShipFromAddr DueDate
    TotalAmt ApplyTaxAfterDiscount PrintStatus Balance
    """.split()  # noqa: SIM905 - a line for each name would hide the rest
)
_FIRST_DAY = date(2026, 8, 1)

Row = dict[str, str]


def full(random: Random, count: int) -> list[Row]:
    """``count`` invoices with ids from 101 on."""
    return [_invoice(random, 101 + number) for number in range(count)]


def incremental(random: Random, known: Sequence[Row], new: int) -> list[Row]:
    """Some known invoices paid meanwhile, some sent again as they were, and ``new`` new ones."""
    touched = random.sample(list(known), k=len(known) // 3)
    paid = [
        {
            **row,
            "Balance": "0.00",
            "MetaData__LastUpdatedTime": utc_text(moment(random, _FIRST_DAY + timedelta(days=62), 4)),
        }
        for row in touched[::2]
    ]
    first_id = 101 + len(known)
    return paid + [dict(row) for row in touched[1::2]] + [_invoice(random, first_id + i) for i in range(new)]


def _invoice(random: Random, number: int) -> Row:
    company = random.randrange(len(COMPANIES))
    created = moment(random, _FIRST_DAY, 60)
    lines = [
        {"Id": str(line + 1), "Description": random.choice(PRODUCTS), "Amount": float(money(random, 10, 900))}
        for line in range(random.randrange(1, 4))
    ]
    total = f"{sum(float(str(line['Amount'])) for line in lines):.2f}"
    return {
        **dict.fromkeys(COLUMNS, ""),
        "AllowIPNPayment": "False",
        "AllowOnlinePayment": "False",
        "AllowOnlineCreditCardPayment": "True",
        "AllowOnlineACHPayment": "False",
        "Id": str(number),
        "MetaData__CreateTime": utc_text(created),
        "MetaData__LastUpdatedTime": utc_text(created),
        "CustomField": str([{"DefinitionId": "1", "Name": "Order #", "Type": "StringType"}]),
        "DocNumber": f"{number:06d}",
        "TxnDate": created.strftime("%Y-%m-%dT00:00:00.000000Z"),
        "CurrencyRef__value": "USD",
        "CurrencyRef__name": "United States Dollar",
        "CustomerRef__value": str(company + 1),
        "CustomerRef__name": COMPANIES[company],
        "Line": str(lines),
        "FreeFormAddress": "True",
        "DueDate": (created + timedelta(days=30)).strftime("%Y-%m-%dT00:00:00.000000Z"),
        "TotalAmt": total,
        "ApplyTaxAfterDiscount": "False",
        "PrintStatus": "NeedToPrint",
        "Balance": random.choice((total, total, "0.00")),
    }
