"""What a reader says of a table, in the same plain form whoever reads it."""

import datetime as dt
import decimal
import io
import json
import zipfile
from pathlib import Path

FOLDER = Path(__file__).parent / "tables"
ANSWERS = FOLDER / "answers.json"


def plain(value):
    """Return a value of a row as JSON keeps it, without a loss."""
    match value:
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case bytes():
            return value.hex()
        case float() | decimal.Decimal():
            return str(value)
        case dt.date():
            return value.isoformat()
        case _:
            return value


def plain_rows(table):
    """Return an Arrow table's rows, in an order of their own."""
    rows = [plain(list(row.values())) for row in table.to_pylist()]
    return sorted(rows, key=lambda row: json.dumps(row, ensure_ascii=False))


def plain_type(kind):
    """Return a Delta type without the metadata of its fields."""
    if isinstance(kind, list):
        return [plain_type(item) for item in kind]
    if isinstance(kind, dict):
        return {name: plain_type(item) for name, item in kind.items() if name != "metadata"}
    return kind


def load():
    """Return all recorded answers by table."""
    return json.loads(ANSWERS.read_text()) if ANSWERS.is_file() else {}


def save(answers):
    """Keep the answers, each version on a line of its own, so that a difference can be read."""
    text = io.StringIO()
    for name, answer in answers.items():
        fields = []
        for key, value in answer.items():
            if key == "versions":
                lines = (
                    f'   "{number}": {json.dumps(found, ensure_ascii=False)}'
                    for number, found in value.items()
                )
                fields.append('  "versions": {\n' + ",\n".join(lines) + "\n  }")
            else:
                fields.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
        separator = ",\n" if text.tell() else ""
        text.write(f'{separator} "{name}": {{\n' + ",\n".join(fields) + "\n }")
    ANSWERS.write_text("{\n" + text.getvalue() + "\n}\n")


def pack(folder, name):
    """Keep the table in a folder as an archive, without the hidden checksums of Hadoop."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                entry = zipfile.ZipInfo(str(path.relative_to(folder)))  # of the same time in each archive
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


def unpack(name, folder):
    """Put the table of an archive into a folder."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(folder)
