"""What the processes of test_serve.py run: a module of its own, since each of them imports it anew."""

WAIT_SECONDS = 60


def hold(sockets, ready, end):
    """A process of a service with the socket that it was given: it tells how many connections it had."""
    (own,) = sockets
    ready.wait(WAIT_SECONDS)
    own.setblocking(False)
    accepted = 0
    while True:
        try:
            own.accept()[0].close()
        except BlockingIOError:
            break
        accepted += 1
    end.put(accepted)
