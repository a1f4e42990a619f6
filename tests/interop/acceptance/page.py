"""The table of differences in the documentation: which answers may differ, and who is right."""

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "delta-compatibility.md"
HEADING, ANY = "## Three readers of the same tables", "any"


@dataclass(frozen=True)
class Row:
    """Answers that may differ in some workloads."""

    workloads: str
    asked: str
    ours: str
    sparks: str
    delta_rs: str
    right: str

    def names(self, workload):
        return self.workloads == ANY or workload in self.workloads.split("; ")

    def allows(self, workload, difference):
        return (
            self.names(workload)
            and (self.asked == ANY or difference.asked in self.asked.split("; "))
            and difference.ours in self.ours.split(" or ")
            and difference.sparks in self.sparks.split(" or ")
            and difference.delta_rs in self.delta_rs.split(" or ")
        )


def rows():
    """The rows of the page's table, without the marks of code."""
    section = PAGE.read_text().split(HEADING)[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    cells = [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines]
    return [Row(*found) for found in cells[1:] if not re.fullmatch(r"-+", found[0])]


def unknown(workload, differences):
    """The differences that no row of the page allows."""
    known = rows()
    return [
        difference for difference in differences if not any(row.allows(workload, difference) for row in known)
    ]


def missing(workload, differences):
    """The rows that name the workload and that none of its tables showed."""
    named = [row for row in rows() if row.workloads != ANY and row.names(workload)]
    return [row for row in named if not any(row.allows(workload, difference) for difference in differences)]
