"""A Java that is none: a script that listens, so that no Spark is started, and archives a list as it is."""

import sys

LISTENER = """
import shutil, socket, sys
if "-Xshare:dump" in sys.argv:
    named = dict(word.partition("=")[::2] for word in sys.argv)
    shutil.copyfile(named["-XX:SharedClassListFile"], named["-XX:SharedArchiveFile"])
    sys.exit("no memory" if "too/Large" in open(named["-XX:SharedClassListFile"]).read() else 0)
if any("SharedArchiveFile" in word and "broken" in open(word.partition("=")[2]).read() for word in sys.argv):
    sys.exit("cannot map the archive")
listener = socket.create_server(("127.0.0.1", 0))
print(f"Spark Connect server started at: 127.0.0.1:{listener.getsockname()[1]} ", flush=True)
while True:  # a server speaks first
    listener.accept()[0].sendall(b"settings")
"""


def use_listener(folder, patch):
    """Put the script into the folder as the Java of this process and its children."""
    (folder / "listener.py").write_text(LISTENER)
    command = folder / "bin" / "java"
    command.parent.mkdir()
    command.write_text(
        f"#!/bin/sh\ncase $1 in -version) echo 'version \"17.0.1\"' >&2;; "
        f'*) exec {sys.executable} {folder}/listener.py "$@";; esac\n'
    )
    command.chmod(0o755)
    patch.setenv("JAVA_HOME", str(folder))
