"""``/docs``: the whole API on one page, which loads nothing and runs nothing."""

import base64
import hashlib
import re

import pytest


@pytest.fixture(scope="module")
def page(serve):
    """The answer to a browser without a key, and the OpenAPI document."""
    served = serve()
    with served.client("") as client:
        answer = client.get("/docs", headers={"accept": "text/html"})
    return answer, served.app.openapi()


def test_the_page_names_each_operation_and_schema(page):
    """Every link leads to a place on the page, and no id is there twice."""
    answer, document = page
    ids = re.findall(r' id="([^"]+)"', answer.text)
    operations = {one["operationId"] for methods in document["paths"].values() for one in methods.values()}
    schemas = {f"schema-{name}" for name in document["components"]["schemas"]}

    assert answer.status_code == 200
    assert len(set(ids)) == len(ids)
    assert operations | schemas <= set(ids)
    assert set(re.findall(r'href="#([^"]+)"', answer.text)) <= set(ids)


def test_the_page_loads_nothing_and_its_policy_allows_its_style_alone(page):
    """Neither a script nor an address elsewhere; the hash in the policy is that of the page's style."""
    answer, _ = page
    style = re.search(r"<style>(.*?)</style>", answer.text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    assert f"default-src 'none'; style-src 'sha256-{digest}'" in answer.headers["content-security-policy"]
    for word in ("<script", " src=", "style=", "onclick", 'href="http'):
        assert word not in answer.text, word
