"""What makes the Java of tests' servers start soon: an archive of its classes, and one compiler."""

from pathlib import Path

CLASSES = Path(__file__).parent.parent / ".cache" / "classes"
# The second compiler pays after some minutes only; until then it takes the processor from everything else.
# Without it Java has a fifth of the memory for compiled code, and a thread that looks for old code in it.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:-UseCodeCacheFlushing"


def with_classes(state):
    """The state folder, made with the archive: servers start there as on a machine that has run some."""
    state.mkdir(mode=0o700, parents=True)
    for archive in CLASSES.glob("*.jsa"):
        (state / archive.name).symlink_to(archive)
    return state
