"""``freezeframe serve``: what it says where it cannot listen."""

import socket

from freezeframe.cli.main import main


def test_a_port_that_is_taken_is_an_error_of_the_call(tmp_path, capsys):
    """It names the address and what to do; no service is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert 2 == main(["serve", "--root", str(tmp_path / "s"), "--port", port, "--workers", "1"])

    said = capsys.readouterr().err
    assert f"The service cannot listen at 127.0.0.1:{port}." in said
    assert "Cause: Address already in use" in said
