// Some rows that differ, as a table: the key first, then the columns in which something changed.
import { Table } from "@mantine/core";
import type { ChangedRow } from "@/api/types";
import { DiffCell, FATES } from "@/parts/DiffCell";
import "./history.css";

interface ChangedRowsTableProps {
  label: string;
  rows: readonly ChangedRow[];
  keyNames: readonly string[];
}

export function ChangedRowsTable({ label, rows, keyNames }: ChangedRowsTableProps) {
  const changed = new Set(rows.flatMap((row) => row.changed));
  const names = [...new Set(rows.flatMap((row) => Object.keys({ ...row.before, ...row.after })))];
  const rank = (name: string) => (keyNames.includes(name) ? 0 : changed.has(name) ? 1 : 2);
  const shown = names.sort((one, other) => rank(one) - rank(other));
  return (
    <Table.ScrollContainer minWidth={Math.min(1200, 90 + shown.length * 130)} mah={300}>
      <Table aria-label={label} className="examples">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>What</Table.Th>
            {shown.map((name) => (
              <Table.Th key={name}>{keyNames.includes(name) ? `${name} (key)` : name}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr
              key={JSON.stringify([row.fate, ...keyNames.map((name) => row.after[name] ?? row.before[name])])}
              className={row.fate === "insert" ? "row-new" : row.fate === "delete" ? "row-gone" : undefined}
            >
              <Table.Td>{FATES[row.fate]}</Table.Td>
              {shown.map((name) => (
                <Table.Td key={name}>
                  <DiffCell row={row} name={name} />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
