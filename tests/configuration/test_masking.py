"""Secrets in settings are never shown, wherever in a value they are."""

import pytest

from freezeframe.configuration.masking import SecretMask, mask_secrets, masked_value, secret_values
from freezeframe.settings import Settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://me:pa55@host/db", "postgresql://me:***@host/db"),
        ("postgresql://:pa55@host/db", "postgresql://:***@host/db"),
        ("postgresql://me@host/db?password=pa55&a=b", "postgresql://me@host/db?password=***&a=b"),
        ("sc://host:15002/;token=abc;use_ssl=true", "sc://host:15002/;token=***;use_ssl=true"),
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("/a/b", "/a/b"),
    ],
)
def test_passwords_and_tokens_in_addresses_are_hidden(text, expected):
    """The rest of the address stays readable."""
    assert mask_secrets(text) == expected


def test_a_secret_setting_is_hidden_whole():
    """A command may hold the key itself; one that is not set is shown as that."""
    assert masked_value(Settings, "master_key_command", "echo 00ff") == "***"
    assert masked_value(Settings, "master_key_command", "") == ""
    assert masked_value(Settings, "commit_tries_max", 20) == 20


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_no_secret_passes_a_stream(size):
    """Whatever the pieces, known secrets and tokens of Spark servers are replaced, and nothing else."""
    text = b"a ;t hunter hunter22 [sc://localhost:1/;token=a-b_C1] sc://h/;token=x;use_ssl=true ;token=end"
    mask = SecretMask(["hunter22", "", "abc"])
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    shown = b"".join(mask.take(piece) for piece in (*pieces, b""))

    assert shown == b"a ;t hunter *** [sc://localhost:1/;token=***] sc://h/;token=***;use_ssl=true ;token=***"
    assert mask.content(text) == shown


def test_a_value_of_json_is_shown_without_secrets():
    """Texts at any depth; secret settings are known by what their fields say."""
    mask = SecretMask(secret_values(Settings(s3_secret_access_key="hunter22")))
    assert mask.values({"a": ["hunter22", 1, None]}) == {"a": ["***", 1, None]}
