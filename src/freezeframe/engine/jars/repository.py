"""Sources of jars: Maven Central by Ivy, which Spark brings along, or a mirror by HTTP.

Ivy knows where Maven Central is. A mirror is a URL of Maven's layout: a company's, or ``file://`` where
there is no network. Both go through the proxies that the usual variables name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from freezeframe.engine.jars.jar import Jar
from freezeframe.engine.java import find_java
from freezeframe.engine.spark_package import spark_jars
from freezeframe.errors import SetupError

_TRIES_MAX = 4
_TIMEOUT_SECONDS = 60
_OUTPUT_LETTERS_MAX = 500
# [SUCCESSFUL ] software.amazon.awssdk#utils;2.29.52!utils.jar (230ms)
_SUCCESSFUL = re.compile(r"\[SUCCESSFUL *\] (\S+)#(\S+);(\S+)!")
_REFUSED = frozenset({400, 401, 403, 404, 410})


def download(jars: Sequence[Jar], folder: Path, mirror: str = "") -> Iterator[tuple[Jar, Path]]:
    """Each jar with the file below ``folder`` that it is in, as soon as it is there; nothing is checked.

    Raises:
        OSError: a jar could not be had.
        SetupError: there is no Java, or no PySpark, to ask Maven Central with; or the mirror is not a URL.
    """
    if not jars:
        return
    folder.mkdir(parents=True, exist_ok=True)
    if mirror:
        for jar in jars:
            yield jar, _from_mirror(jar, folder, mirror)
    else:
        yield from _from_central(jars, folder)


def _from_mirror(jar: Jar, folder: Path, mirror: str) -> Path:
    if urlsplit(mirror).scheme not in {"https", "http", "file"}:
        raise SetupError(f"{mirror!r} is not a URL of a Maven repository.", remedy="Use https:// or file://.")
    url = f"{mirror.rstrip('/')}/{jar.repository_path}"
    file = folder / f"{jar.file_name}.part"
    for attempt in range(_TRIES_MAX):
        try:
            with (
                urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer,  # noqa: S310 - its scheme was checked, its bytes are
                file.open("wb") as target,
            ):
                shutil.copyfileobj(answer, target)
        except OSError as error:
            is_refused = isinstance(error, urllib.error.HTTPError) and error.code in _REFUSED
            if is_refused or attempt == _TRIES_MAX - 1:
                raise OSError(f"{url}: {error}") from error
            time.sleep(2**attempt)
        else:
            break
    return file


def _from_central(jars: Sequence[Jar], folder: Path) -> Iterator[tuple[Jar, Path]]:
    names = {(jar.group, jar.artifact, jar.version): jar for jar in jars}
    order = folder / "ivy.xml"
    order.write_text(_order(jars))
    command = [
        *(str(find_java().command), *proxy_options(os.environ), "-jar", str(_ivy())),
        *("-ivy", str(order), "-cache", str(folder), "-confs", "default"),
    ]
    told = []
    with subprocess.Popen(  # noqa: S603 - Spark's own jar
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        try:
            for line in process.stdout or ():
                told.append(line)
                found = _SUCCESSFUL.search(line)
                jar = names.pop((found[1], found[2], found[3]), None) if found else None
                if jar is not None:
                    yield jar, next(folder.rglob(jar.file_name))
        finally:
            process.kill()
    if names:
        missing = ", ".join(jar.file_name for jar in names.values())
        raise OSError(f"Maven Central did not give {missing}: {''.join(told)[-_OUTPUT_LETTERS_MAX:]}")


def _order(jars: Sequence[Jar]) -> str:
    dependencies = "".join(
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false" '
        'conf="default"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="freezeframe" module="jars"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _ivy() -> Path:
    return next(spark_jars().glob("ivy-*.jar"))


def proxy_options(environment: Mapping[str, str]) -> list[str]:
    """Java options for the proxies in variables such as ``HTTPS_PROXY``."""
    options = []
    for scheme in ("http", "https"):
        url = environment.get(f"{scheme}_proxy") or environment.get(f"{scheme.upper()}_PROXY")
        place = urlsplit(url) if url else None
        if place is not None and place.hostname:
            options.append(f"-D{scheme}.proxyHost={place.hostname}")
            options += [f"-D{scheme}.proxyPort={place.port}"] if place.port else []
    spared = environment.get("no_proxy") or environment.get("NO_PROXY")
    if spared and options:
        hosts = (f"*{host}" if host.startswith(".") else host for host in spared.split(","))
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(host.strip() for host in hosts)}")
    return options
