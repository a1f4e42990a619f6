// The rows of a CSV file, of which only those that are seen exist; a search leaves the rows that contain a text.
import { Group, Text, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useMemo } from "react";
import { usePanel } from "@/navigation/panel";
import { Cell } from "@/parts/Cell";
import { EmptyNote } from "@/parts/EmptyNote";
import { countText } from "@/parts/formats";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import type { CsvTable } from "./csv-table";

type Row = { number: number; values: string[] };
const COLUMN_WIDTH = 150;

export function CsvGrid({ path, table }: { path: string; table: CsvTable }) {
  const { search, go } = usePanel();
  const text = (search.find ?? "").toLowerCase();
  const rows = useMemo(
    () =>
      table.rows
        .map((values, place): Row => ({ number: place + 1, values }))
        .filter((row) => text === "" || row.values.some((value) => value.toLowerCase().includes(text))),
    [table, text],
  );
  const columns = useMemo(() => columnsOf(table), [table]);
  return (
    <>
      <Group gap="sm">
        <TextInput
          size="xs"
          aria-label="Search this file"
          placeholder="Search"
          leftSection={<IconSearch size={14} />}
          value={search.find ?? ""}
          onChange={(event) => go({ find: event.currentTarget.value || undefined }, true)}
        />
        <Text size="xs" c="dimmed" role="status">
          {text === ""
            ? `${countText(table.rows.length)} rows`
            : `${countText(rows.length)} of ${countText(table.rows.length)} rows`}
        </Text>
      </Group>
      {table.rows.length === 0 ? (
        <EmptyNote title="The file has no rows.">
          {table.columns.length > 0 && `Its columns are ${table.columns.join(", ")}.`}
        </EmptyNote>
      ) : rows.length === 0 ? (
        <EmptyNote title={`No row contains “${search.find}”.`} />
      ) : (
        <VirtualGrid
          label={`Rows of ${path}`}
          rows={rows}
          columns={columns}
          keyOf={(row) => String(row.number)}
          rowHeight={28}
          minWidth={columns.length * COLUMN_WIDTH}
        />
      )}
    </>
  );
}

function columnsOf(table: CsvTable): Column<Row>[] {
  const numbers: Column<Row> = {
    id: "number",
    header: "Row",
    width: "56px",
    align: "right",
    cell: (row) => <span className="dim">{countText(row.number)}</span>,
  };
  const own = table.columns.map(
    (name, place): Column<Row> => ({
      id: `${place}`,
      header: name || `Column ${place + 1}`,
      width: `minmax(${COLUMN_WIDTH - 12}px, 1fr)`,
      cell: (row) => <Cell value={row.values[place]} />,
    }),
  );
  return [numbers, ...own];
}
