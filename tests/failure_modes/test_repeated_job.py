"""A job that is run again has the first answer, whatever its input."""

import pytest

from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Tenant


@pytest.mark.parametrize("earlier", [0, 1], ids=["the first version", "a later version"])
def test_a_repeated_job_has_the_first_answer(earlier):
    """A job that appends to what it reads is done once; again it reads what it read then."""
    tenant = Tenant(MemoryStorage(), None, Settings())
    for number in range(earlier):
        tenant.files.write("log", b"%d" % number)
    before = tenant.files.read("log") if earlier else b""

    def run(more):
        with tenant.job("2026-11-21T04:00") as job:
            known = job.files.read("log") if job.files.exists("log") else b""
            job.files.write("log", known + more)
        return job.receipt

    first = run(b"more")
    tenant.files.write("other", b"")
    again = run(b"more")

    assert (earlier, earlier, True) == (first.tenant_version, again.tenant_version, again.repeated)
    assert before + b"more" == tenant.files.read("log")
    assert run(b"else").repeated
    assert before + b"more" == tenant.files.read("log")
    assert earlier + 1 == tenant.version
