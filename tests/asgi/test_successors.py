"""A tenant that has the id of an earlier one has nothing else of it."""

import json
import threading

import httpx
from sqlalchemy import select

from freezeframe.control.schedules import ScheduleRequest, Schedules, Timing
from freezeframe.control.tables import audit

IMPORTED = b"Id\n1\n"


def test_a_new_tenant_sees_nothing_of_the_one_before(served, api):
    """Deleted and made again, a tenant has no audit entry, no job and no file of the earlier one."""
    place = served.tenant("phoenix")
    api.put(f"{place}/files/secret-of-the-first.txt", content=b"x").raise_for_status()
    body = {"content": IMPORTED, "headers": {"content-type": "text/csv"}}
    done = api.post(f"{place}/streams/Account/import?key=Id", **body)
    assert done.status_code == 202, done.text
    assert len(api.get(f"{place}/jobs").json()["jobs"]) == 1
    before = api.get(f"{place}/audit").text
    assert "secret-of-the-first" in before

    assert api.delete(place, params={"confirm": "phoenix"}).status_code == 200
    made = api.post("/api/v1/environments/dev/tenants", json={"tenant": "phoenix"})
    assert made.status_code == 201
    after = api.get(f"{place}/audit").json()["entries"]
    assert [item["action"] for item in after] == ["tenant.create"]
    assert api.get(f"{place}/jobs").json()["jobs"] == []
    assert api.get("/api/v1/audit/proof").json()["is_whole"]
    assert api.get(f"{place}/files/secret-of-the-first.txt").status_code == 404


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

    def restore(version):
        with httpx.Client(base_url=served.url, headers={"x-api-key": key, "if-match": '"2"'}) as client:
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
