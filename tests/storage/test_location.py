"""One block of settings says how S3 is reached, to the log's client and to Spark's alike."""

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.settings import Settings
from freezeframe.storage.location import S3Access

KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "s3cr3t"}


def test_without_anything_it_is_amazon_and_a_role():
    """No endpoint, no keys: buckets in host names, credentials from where the machine runs."""
    access = S3Access.of(Settings(), {})
    assert access.obstore_options() == {"region": "us-east-1", "virtual_hosted_style_request": True}
    options = access.hadoop_options()
    assert "fs.s3a.endpoint" not in options
    assert options["fs.s3a.path.style.access"] == "false"
    assert options["fs.s3a.aws.credentials.provider"].endswith("DefaultCredentialsProvider")
    assert access.hadoop_secrets() == {}


def test_variables_fill_what_the_settings_leave_open():
    """An endpoint means buckets in the path, unless the settings say otherwise."""
    environment = {**KEYS, "AWS_ENDPOINT_URL": "http://127.0.0.1:9000/", "AWS_REGION": "eu-central-1"}
    access = S3Access.of(Settings(), environment)
    assert access.obstore_options() == {
        "region": "eu-central-1",
        "virtual_hosted_style_request": False,
        "endpoint": "http://127.0.0.1:9000",
        "client_options": {"allow_http": True},
        "access_key_id": "id",
        "secret_access_key": "s3cr3t",
    }
    assert access.hadoop_options()["fs.s3a.connection.ssl.enabled"] == "false"
    assert access.hadoop_secrets() == {"fs.s3a.access.key": "id", "fs.s3a.secret.key": "s3cr3t"}
    assert not S3Access.of(Settings(s3_path_style="no"), environment).is_path_style


def test_a_key_of_the_settings_is_never_mixed_with_one_of_the_variables():
    """A half key is refused, and another key's token is not sent along."""
    own = Settings(s3_access_key_id="mine", s3_secret_access_key="own")
    access = S3Access.of(own, {**KEYS, "AWS_SESSION_TOKEN": "theirs"})
    assert (access.key_id, access.secret, access.token) == ("mine", "own", "")
    with pytest.raises(InvalidOption, match="incomplete"):
        S3Access.of(Settings(s3_access_key_id="mine"), KEYS)
    with pytest.raises(InvalidOption, match="not an endpoint"):
        S3Access.of(Settings(s3_endpoint="minio:9000"), {})


def test_a_temporary_key_is_told_as_one_and_no_secret_is_shown():
    """The token goes along; what is printed, logged or digested holds neither it nor the secret."""
    access = S3Access.of(Settings(), {**KEYS, "AWS_SESSION_TOKEN": "t0k3n"})
    assert access.hadoop_options()["fs.s3a.aws.credentials.provider"].endswith(
        "TemporaryAWSCredentialsProvider"
    )
    assert access.hadoop_secrets()["fs.s3a.session.token"] == "t0k3n"
    assert access.obstore_options()["session_token"] == "t0k3n"
    assert not {"s3cr3t", "t0k3n"} & set(access.hadoop_options().values())
    assert "s3cr3t" not in repr(access) + access.digest
    assert "t0k3n" not in repr(access)
    assert access.digest != S3Access.of(Settings(), KEYS).digest
