"""Secrets in settings are never shown, wherever in a value they are."""

import pytest

from freezeframe.configuration.masking import mask_secrets, masked_value
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
