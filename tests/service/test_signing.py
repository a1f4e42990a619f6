"""The service's secret: made once, and kept private."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from freezeframe.errors import InvalidOption, SetupError
from freezeframe.service.signing import Cursors, ServiceSecret, load_secret, secret_path
from freezeframe.settings import Settings


def test_the_secret_is_made_once(tmp_path):
    """In the store's own folder, for its owner only; every process has the same."""

    def signature(_):
        return load_secret(Settings(), str(tmp_path)).sign(b"test", b"content")

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(signature, range(8)))) == 1
    assert secret_path(Settings(), str(tmp_path)).stat().st_mode & 0o777 == 0o600


def test_a_signature_is_of_one_content_under_one_label():
    """Neither another secret, nor another kind of text, nor another content has it; no signature is none."""
    secret = ServiceSecret(b"s" * 32)
    signature = secret.sign(b"cursors", b"content")

    assert secret.is_signed(b"cursors", b"content", signature)
    assert secret.is_signed(b"cursors", b"content", signature[:16])
    assert not secret.is_signed(b"audit", b"content", signature)
    assert not secret.is_signed(b"cursors", b"other", signature)
    assert not secret.is_signed(b"cursors", b"content", b"")
    assert not ServiceSecret(b"t" * 32).is_signed(b"cursors", b"content", signature)


def test_cursors_of_another_secret_are_refused():
    """Replacing the secret ends them; a list is begun anew."""
    cursor = Cursors(ServiceSecret(b"s" * 32)).encode("rows", 7)

    assert Cursors(ServiceSecret(b"s" * 32)).read("rows", cursor) == 7
    for secret, listing in ((b"t" * 32, "rows"), (b"s" * 32, "files")):
        with pytest.raises(InvalidOption):
            Cursors(ServiceSecret(secret)).read(listing, cursor)


@pytest.mark.parametrize(
    ("content", "mode", "said"), [(b"x" * 32, 0o644, "by others"), (b"short", 0o600, "too short")]
)
def test_a_secret_that_cannot_be_one_is_refused(tmp_path, content, mode, said):
    """One that others may read, or that is short."""
    file = tmp_path / "secret"
    file.write_bytes(content)
    file.chmod(mode)
    with pytest.raises(SetupError, match=said):
        load_secret(Settings(service_secret_file=file), str(tmp_path))


def test_a_store_in_a_bucket_needs_a_file_of_its_own():
    """The secret never lies in the bucket."""
    with pytest.raises(SetupError, match="separate secret file"):
        load_secret(Settings(), "s3://bucket/store")
