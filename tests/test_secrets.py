"""What is secret is in no representation of a value: they end in logs, tracebacks and reports."""

import ast
import re
from pathlib import Path

import pytest

import freezeframe
from freezeframe.engine.server.server import Address
from freezeframe.errors import InvalidOption
from freezeframe.runs.job_root import JobRoot, ScriptPlan
from freezeframe.runs.request import RunRequest
from freezeframe.runs.warm.messages import Work
from freezeframe.service.access.access import Stores
from freezeframe.settings import Settings, load_settings, resolve_settings
from freezeframe.storage.objects import ObjectStorage

SECRET = "hunter2"
PACKAGE = Path(freezeframe.__file__).parent
SECRET_NAME = re.compile(r"(?:.*_)?(?:secret|token|password|verifier|nonce)")
# Names of runs that were made void: nobody gets anything for them.
NO_SECRETS = {"TenantChange.revoked_tokens", "TenantState.revoked_tokens"}
GIVEN = {
    **{
        name: SECRET
        for name, field in Settings.model_fields.items()
        if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("secret")
    },
    "s3_access_key_id": SECRET,
    "spark": f"sc://host:15002/;token={SECRET}",
    "maven_repository": f"https://user:{SECRET}@example.com",
}


@pytest.fixture
def settings(tmp_path):
    """Settings with a secret wherever there can be one."""
    return Settings(**GIVEN, state_dir=tmp_path / "state")


def test_settings_show_no_secret(settings, monkeypatch, tmp_path):
    """Neither their text, nor what loads them, nor the error of a value that cannot be."""
    for name, value in GIVEN.items():
        monkeypatch.setenv(f"FREEZEFRAME_{name.upper()}", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    shown = [repr(item) for item in (settings, str(settings), load_settings(), resolve_settings())]
    assert not [text for text in shown if SECRET in text]
    assert SECRET == settings.s3_secret_access_key == load_settings().s3_secret_access_key
    with pytest.raises(InvalidOption) as refused:
        resolve_settings(s3_secret_access_key=[SECRET])
    assert SECRET not in str(refused.value)


def test_what_holds_settings_shows_no_secret(settings, tmp_path):
    """A tenant's place, a plan, what is handed to the warm runner, where Spark is."""
    parameters = {"password": SECRET}
    request = RunRequest("s", "dev", "acme", Path("etl.py"), "j", parameters=parameters, token=SECRET)
    held = [
        Stores(str(tmp_path / "store"), settings).environment("dev").tenant("acme", create=True).context,
        ScriptPlan(request, settings, 1),
        Work("module", (), {"AWS_SECRET_ACCESS_KEY": SECRET}, 0, {}),
        Address(1, SECRET, "start", 1, 1),
        JobRoot(tmp_path),
        ObjectStorage.at("s3://bucket", access_key_id=SECRET, secret_access_key=SECRET).sendable(),
    ]
    assert not [item for item in map(repr, held) if SECRET in item]


def test_no_value_shows_a_field_that_is_named_as_a_secret():
    """Whatever is called a token, password or secret in a class of ours is left out of its text."""
    shown = []
    for file in PACKAGE.rglob("*.py"):
        for found in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(found, ast.ClassDef) and "TypedDict" not in map(ast.unparse, found.bases):
                shown += [f"{found.name}.{secret}" for secret in _shown_secrets(found)]
    assert set(shown) - NO_SECRETS == set()


def _shown_secrets(found):
    if found.name == "Settings":  # it hides by what its fields say of themselves
        return
    for item in found.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            is_told = "repr=False" not in ast.unparse(item)
            if SECRET_NAME.fullmatch(item.target.id) and is_told:
                yield item.target.id
