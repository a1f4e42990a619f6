"""The threat model: each test that it names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "threat-model.md").read_text()


def test_each_limit_has_its_test():
    """A file is named by its name or path, a test after two colons; one without a file is of the last."""
    named, file = [], ""
    for quoted in re.findall(r"`([\w/.]*(?:test_\w+\.py)?(?:::test_\w+)?)`", PAGE):
        path, _, test = quoted.partition("::")
        if not quoted.startswith("::") and not path.endswith(".py"):
            continue
        file = path or file
        found = [item for item in (ROOT / "tests").rglob(Path(file).name) if str(item).endswith(file)]
        assert found, file
        assert not test or any(f"def {test}(" in item.read_text() for item in found), quoted
        named.append(quoted)

    assert 20 < len(named)
