"""A tenant that has the id of an earlier one has nothing else of it."""

import json
import threading

import httpx
from sqlalchemy import select

from freezeframe.control.schedules import ScheduleRequest, Schedules, Timing
from freezeframe.control.tables import audit


def test_a_schedule_ends_with_its_tenant(served, api):
    """The service's audit tells which schedules there were; those of other tenants go on."""
    schedules = Schedules(served.service.database)
    place = served.tenant("timed")
    for tenant, name in (("timed", "nightly"), ("timed", "hourly"), ("others", "nightly")):
        schedules.create(ScheduleRequest(name, "dev", tenant, Timing("@daily"), "{}"))
    headers = {"x-request-id": "timed-ends"}

    assert api.delete(f"{place}?confirm=timed", headers=headers).status_code == 200
    assert [item.definition.name for item in schedules.list(tenant="timed")] == []
    assert [item.definition.name for item in schedules.list(tenant="others")] == ["nightly"]
    with served.service.database.read() as connection:
        mine = audit.c.request_id.startswith("timed-ends.")
        body = connection.execute(select(audit.c.details).where(mine)).scalars()
        assert [json.loads(item)["schedules"] for item in body] == [["hourly", "nightly"]]
    schedules.delete("dev", "others", "nightly")


def test_of_restorations_of_the_same_version_one_is_done(served, api):
    """If-Match holds at the commit: of many restorations that rest on the same version one is carried out."""
    place, key = served.tenant("rewound"), served.key()
    for number in range(3):
        api.put(f"{place}/files/a.txt", content=b"%d" % number).raise_for_status()
    statuses, begun = [], threading.Barrier(6)
    seen = api.get(place).headers["etag"]

    def restore(version):
        with httpx.Client(base_url=served.url, headers={"x-api-key": key, "if-match": seen}) as client:
            begun.wait(10)
            answer = client.post(f"{place}/restorations", json={"version": version}, timeout=60)
            statuses.append(answer.status_code)

    threads = [threading.Thread(target=restore, args=(number % 2,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [200, *[412] * 5] == sorted(statuses)
    assert api.get(place).json()["version"] == 3
