"""Operations on deliveries: what a target has of a stream, which rows it refused, and to send these again."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from freezeframe.identifiers import StreamName
from freezeframe.service.operations.operation import Limit, NamedStream, about, example, operation
from freezeframe.service.rows.differences import keys_of_texts
from freezeframe.service.rows.streams import json_value
from freezeframe.store.delivery import DeliveryReport
from freezeframe.store.diff.delivery_state import state_name

if TYPE_CHECKING:
    from freezeframe.service.operations.caller import TenantCaller
    from freezeframe.store import Tenant

of_deliveries = partial(operation, tag="deliveries")

Target = Annotated[
    str, about("The name of the delivery.", min_length=1, max_length=200, examples=["salesforce"])
]


@dataclass(frozen=True, slots=True)
class KeptDelivery:
    """A stream whose rows were sent to a target, and the stream that keeps what the target answered."""

    stream: str
    target: str
    state: str


@dataclass(frozen=True, slots=True)
class DeliveryList:
    """The deliveries of a tenant."""

    __pydantic_config__: ClassVar = example(
        deliveries=[{"stream": "Contact", "target": "salesforce", "state": "Contact.delivery.salesforce"}]
    )
    deliveries: list[KeptDelivery]


@dataclass(frozen=True, slots=True)
class RetriedRows:
    """How many rows that a target refused are pending again."""

    __pydantic_config__: ClassVar = example(rows=2, tenant_version=13, committed=True)
    rows: int
    tenant_version: int
    committed: Annotated[bool, Field(description="False: no such row was refused.")]


@of_deliveries(
    "GET /deliveries",
    "snapshots:read",
    command="delivery list",
    columns=("stream", "target", "state"),
    empty="No rows were delivered: tenant.delivery(TARGET) in a script does it.",
)
def list_deliveries(tenant: "Tenant", _caller: "TenantCaller") -> DeliveryList:
    """List the streams whose rows scripts have sent to targets, with the streams that keep the answers."""
    return DeliveryList(
        [
            KeptDelivery(stream, target, str(state_name(StreamName(stream), target)))
            for stream, target in tenant.deliveries()
        ]
    )


@of_deliveries("GET /streams/{stream}/deliveries/{target}", "snapshots:read", command="delivery show")
def show_delivery(
    tenant: "Tenant", _caller: "TenantCaller", stream: NamedStream, target: Target, limit: Limit = 100
) -> DeliveryReport:
    """Show what a target has of a stream: rows accepted, pending and refused, and why.

    `rows` are those that it refused as they are, and those that it has and the stream has not.
    """
    report = tenant.delivery(target).report(stream, limit)
    return replace(report, rows=tuple(replace(row, key=json_value(row.key)) for row in report.rows))


@of_deliveries(
    *(
        "POST /streams/{stream}/deliveries/{target}/retries",
        "snapshots:write",
        "delivery.retry",
        "delivery retry",
    ),
    body="RetryOrder",
    example={"keys": ["007"]},
    details=("target",),
)
def retry_delivery(
    tenant: "Tenant",
    caller: "TenantCaller",
    stream: NamedStream,
    target: Target,
    keys: Annotated[
        list[str],
        about(
            "Keys of rows as text; of several columns, or where the text begins with `[`, a JSON array of "
            "the values. Without any: all rows that the target refused.",
            flag="--key",
            max_length=5000,
        ),
    ] = [],  # noqa: B006 - never changed
    message: Annotated[str, about("Why, for the history.", max_length=1000)] = "",
) -> RetriedRows:
    """Make rows that a target refused pending again, as they are, as one version."""
    author = caller.author(message)
    with tenant.job(message=author.message, who=author.who) as job:
        delivery = job.delivery(target)
        named = keys_of_texts(job[state_name(stream, target)], keys) if keys else None
        rows = delivery.retry(stream, named)
    return RetriedRows(rows, job.receipt.tenant_version, job.receipt.committed)


OPERATIONS = (list_deliveries, show_delivery, retry_delivery)
