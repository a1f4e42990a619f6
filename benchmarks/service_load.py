"""A constant rate of requests from a number of connections; a process of its own, told what to do on stdin.

Open loop: request ``n`` is due ``n / rate`` seconds after the start, whatever became of those before it. The
next free connection sends it, and its latency counts from when it was due: an answer that is late delays
what waits behind it, and that is counted too. Speaks HTTP/1.1 with connections that are kept, nothing else.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import resource
import sys
import time
from collections import Counter, deque
from typing import Any, cast

import uvloop

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TICK_SECONDS = 0.001
_PATIENCE_SECONDS = 30


class Load:
    """One run: what is due, what is under way, and what came of it."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.streams = [_Requests(item) for item in order["streams"]]
        self.seconds = float(order["seconds"])
        self.host, self.port = order["host"], order["port"]
        self.idle: deque[_Connection] = deque()
        self.due: deque[tuple[float, _Requests]] = deque()

    async def run(self, connections: int) -> dict[str, Any]:
        """Send everything and wait for all answers; figures by stream, and the processor time it took."""
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            _, one = await loop.create_connection(lambda: _Connection(self), self.host, self.port)
            self.idle.append(one)
        gc.freeze()
        gc.disable()  # the generator's own pauses are nobody else's latency
        before, started = _processor_seconds(), time.perf_counter() + 0.05
        while True:
            now = time.perf_counter()
            passed = now - started
            for stream in self.streams:
                for moment in stream.due_until(passed, self.seconds):
                    self.due.append((started + moment, stream))
            self.send()
            if passed > self.seconds and not self.due and len(self.idle) == connections:
                break
            if passed > self.seconds + _PATIENCE_SECONDS:
                break  # what is not answered by now is told as unanswered
            await asyncio.sleep(_TICK_SECONDS)
        used = _processor_seconds() - before
        return {
            "generator_processor_seconds": round(used, 2),
            "generator_processor_share_of_a_core": round(used / (time.perf_counter() - started), 3),
            "streams": {item.name: item.told(self.seconds) for item in self.streams},
        }

    def send(self) -> None:
        """Give what is due to who is free."""
        while self.due and self.idle:
            moment, stream = self.due.popleft()
            self.idle.popleft().ask(moment, stream)


class _Requests:
    """One kind of request at one rate, over any number of targets in turn."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.name = order["name"]
        self._rate = float(order["rate"])
        self._texts = [
            (f"{item['method']} {item['target']} HTTP/1.1\r\nhost: 127.0.0.1\r\n{item['headers']}").encode()
            for item in order["requests"]
        ]
        self._body = b"x" * int(order.get("body_bytes", 0))
        self._same_body = order.get("body")
        self._sent = self._begun = 0
        self.seconds: list[float] = []
        self.statuses: Counter[str] = Counter()

    def due_until(self, passed: float, seconds: float) -> list[float]:
        """The moments up to now for which nothing was sent yet; the first is that of the start."""
        count = min(int(passed * self._rate) + 1, int(seconds * self._rate)) - self._sent
        moments = [(self._sent + number) / self._rate for number in range(max(count, 0))]
        self._sent += len(moments)
        return moments

    def text(self) -> bytes:
        """The next request, whole; its body differs from all others, so that each is a new version."""
        head = self._texts[self._begun % len(self._texts)]
        self._begun += 1
        if self._same_body is not None:
            return head + f"content-length: {len(self._same_body)}\r\n\r\n{self._same_body}".encode()
        if not self._body:
            return head + b"\r\n"
        body = b"%020d" % time.perf_counter_ns() + self._body[20:]
        return head + b"content-length: %d\r\n\r\n" % len(body) + body

    def told(self, seconds: float) -> dict[str, Any]:
        """Rates, statuses and latencies in milliseconds."""
        found = sorted(self.seconds)
        share = {
            f"p{text}_ms": round(1000 * found[min(int(len(found) * part), len(found) - 1)], 2)
            for text, part in (("50", 0.5), ("90", 0.9), ("99", 0.99), ("99_9", 0.999))
            if found
        }
        return {
            "asked_per_second": self._rate,
            "answered_per_second": round(len(found) / seconds, 1),
            "requests": self._sent,
            "unanswered": self._sent - len(found),
            "statuses": dict(sorted(self.statuses.items())),
            **share,
            "most_ms": round(1000 * found[-1], 2) if found else None,
        }


class _Connection(asyncio.Protocol):
    """One kept connection with at most one request under way."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._received = bytearray()
        self._whole = -1
        self._moment = 0.0
        self._stream: _Requests | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own is none by its class

    def ask(self, moment: float, stream: _Requests) -> None:
        self._moment, self._stream = moment, stream
        self._transport.write(stream.text())

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._whole < 0:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            found = _LENGTH.search(self._received, 0, end + 2)
            self._whole = end + 4 + (int(found[1]) if found else 0)
        if len(self._received) < self._whole or self._stream is None:
            return
        self._stream.seconds.append(time.perf_counter() - self._moment)
        self._stream.statuses[self._received[9:12].decode()] += 1
        self._received.clear()
        self._whole, self._stream = -1, None
        self._load.idle.append(self)
        self._load.send()

    def connection_lost(self, _: Exception | None) -> None:
        if self._stream is not None:
            self._stream.statuses["broken"] += 1


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _loaded(order: dict[str, Any]) -> dict[str, Any]:
    return await Load(order).run(int(order["connections"]))


def main() -> int:
    order = json.load(sys.stdin)
    result = uvloop.run(_loaded(order))
    json.dump(result, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
