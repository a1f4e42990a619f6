"""``freezeframe serve``: what it says before it listens, and where it cannot."""

import socket

from freezeframe.cli.main import main


def test_a_port_that_is_taken_is_an_error_of_the_call(tmp_path, capsys):
    """It names the address and what to do; no service is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--root", str(tmp_path / "s"), "--port", port, "--workers", "1"]) == 2

    said = capsys.readouterr().err
    assert f"The service cannot listen at 127.0.0.1:{port}." in said
    assert "Cause: Address already in use" in said


def test_it_says_how_to_sign_in_until_somebody_can(tmp_path, capsys):
    """A store without keys and people has nobody whom the service would answer."""
    root, told = ["--root", str(tmp_path / "s")], []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for _ in range(2):
            main(["serve", *root, "--port", str(taken.getsockname()[1]), "--workers", "1"])
            told.append("Nobody can sign in yet: freezeframe key create" in capsys.readouterr().err)
            assert main(["key", "create", *root]) == 0

    assert told == [True, False]
