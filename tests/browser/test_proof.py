"""The page of the last proof: that there is none yet, what was tried, and what broke a promise."""

import json

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
PROOFS = [
    {
        "name": "listing",
        "verdict": "kept",
        "promise": "A listing shows what is there.",
        "counts": {"listings": 1200, "changes": 60},
        "violations": [],
        "seconds": 1.5,
    },
    {
        "name": "kill",
        "verdict": "broken",
        "promise": "An acknowledged commit stays.",
        "counts": {"kills": 6},
        "violations": ["version 3 was acknowledged and is missing"],
        "seconds": 20.0,
    },
]


def test_the_last_proof_is_shown(page, picture):
    """Before the first one the command is; a broken promise is told with what was seen."""
    page.goto("/proof")
    expect(page.get_by_text("freezeframe prove --minutes 10")).to_be_visible()
    report = {"verdict": "broken", "seed": 7, "finished": "2026-01-01T00:00:00Z", "proofs": PROOFS}
    page.route("**/api/v1/proof", lambda route: route.fulfill(body=json.dumps(report)))
    page.reload()
    expect(page.get_by_text("freezeframe prove --seed 7")).to_be_visible()
    expect(page.get_by_role("region", name="listing")).to_contain_text("1,200 listings · 60 changes · 1.5 s")
    broken = page.get_by_role("region", name="kill")
    expect(broken).to_contain_text("broken")
    expect(broken.get_by_role("listitem")).to_have_text("version 3 was acknowledged and is missing")
    picture(page, "proof")
