"""Leads as a CRM tap leaves them: 57 columns, most of them empty, with text that breaks careless readers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from random import Random

from freezeframe.testing.invented import (
    COMPANIES,
    FIRST_NAMES,
    LAST_NAMES,
    TOWNS,
    crm_id,
    long_number,
    moment,
    utc_text,
)

COLUMNS = tuple(
    """
    Id IsDeleted MasterRecordId LastName FirstName Salutation Name Title Company Street City State
    PostalCode Country Latitude Longitude GeocodeAccuracy Phone MobilePhone Fax Email Website
    PhotoUrl Description LeadSource Status Industry Rating AnnualRevenue NumberOfEmployees OwnerId
    IsConverted ConvertedDate ConvertedAccountId ConvertedContactId ConvertedOpportunityId
    IsUnreadByOwner CreatedDate CreatedById LastModifiedDate LastModifiedById SystemModstamp
    LastActivityDate LastViewedDate LastReferencedDate Jigsaw JigsawContactId CleanStatus
    CompanyDunsNumber DandbCompanyId EmailBouncedReason EmailBouncedDate BillingCode__c
    ExternalId__c Newsletter__c Notes__c Segment__c
    """.split()  # noqa: SIM905 - a line for each name would hide the rest
)
STATUSES = ("Open - Not Contacted", "Working - Contacted", "Closed - Converted", "Closed - Not Converted")
_OWNERS = ("Dagny Plum", "Ivo Rao")
_CREATED = date(2026, 8, 3)

Row = dict[str, str]


def full(random: Random, count: int) -> list[Row]:
    """``count`` leads, each with an id of its own."""
    return [_lead(random, number) for number in range(count)]


def incremental(random: Random, known: Sequence[Row], new: int) -> list[Row]:
    """What the tap sends after a while: some known leads changed, some as they were, and ``new`` new ones.

    A changed lead also comes with its phone number empty, as taps do for fields that they were
    not granted this time: what is known about it must stay.
    """
    touched = random.sample(list(known), k=len(known) * 2 // 5)
    changed = [_change(random, row) for row in touched[: len(touched) // 2]]
    resent = [dict(row) for row in touched[len(touched) // 2 :]]
    rows = changed + resent + [_lead(random, len(known) + number) for number in range(new)]
    random.shuffle(rows)
    return rows


def _change(random: Random, row: Row) -> Row:
    other = [status for status in STATUSES if status != row["Status"]]
    modified = utc_text(moment(random, _CREATED + timedelta(days=60), 5))
    return {
        **row,
        "Status": random.choice(other),
        "Phone": "",
        "Description": "Called back.\nWants the offer by mail, please.",
        "LastModifiedDate": modified,
        "SystemModstamp": modified,
    }


def _lead(random: Random, number: int) -> Row:
    first, last = random.choice(FIRST_NAMES), random.choice(LAST_NAMES)
    company = random.choice(COMPANIES)
    created = utc_text(moment(random, _CREATED, 50))
    owner = crm_id(Random(random.choice(_OWNERS)), "005")  # noqa: S311 - invented data
    row = dict.fromkeys(COLUMNS, "")
    row |= {
        "Id": crm_id(random, "00Q"),
        "IsDeleted": "False",
        "LastName": last,
        "FirstName": first,
        "Salutation": random.choice(("Mx.", "Dr.", "Ms.", "Mr.")),
        "Name": f"{first} {last}",
        "Title": random.choice(("VP, Operations", "Bookkeeper", "CFO", "Head of Data, EMEA")),
        "Company": company,
        "Phone": f"(555) 555-01{number % 100:02d}",
        "Email": f"lead{number}@{company.split()[0].strip(',').lower()}.example",
        "PhotoUrl": f"/services/images/photo/{number}",
        "LeadSource": random.choice(("Web", "Fair", "Referral")),
        "Status": random.choice(STATUSES),
        "OwnerId": owner,
        "IsConverted": random.choice(("False", "False", "True")),
        "IsUnreadByOwner": random.choice(("False", "True")),
        "CreatedDate": created,
        "CreatedById": owner,
        "LastModifiedDate": created,
        "LastModifiedById": owner,
        "SystemModstamp": created,
        "CleanStatus": "Pending",
        "ExternalId__c": long_number(random),
        "Segment__c": random.choice(("1e5", "007", "NA", "+33 12")),
    }
    return row | _sometimes(random)


def _sometimes(random: Random) -> Row:
    town, state, postal_code, country = random.choice(TOWNS)
    found = {"Country": country}
    if random.random() < 0.4:  # noqa: PLR2004 - most leads have no address
        street = f"{random.randrange(1, 99)} Mill Lane\nBack entrance, 2nd floor"
        found |= {"Street": street, "City": town, "State": state, "PostalCode": postal_code}
    if random.random() < 0.2:  # noqa: PLR2004
        found |= {"AnnualRevenue": f"{random.randrange(1, 900)}000.0", "NumberOfEmployees": "120"}
    if random.random() < 0.1:  # noqa: PLR2004
        found |= {"Notes__c": 'Said "maybe, later"', "BillingCode__c": "000042"}
    return found
