// A short table, all of whose rows exist; its columns are as those of a grid.
import { Table } from "@mantine/core";
import type { Column } from "./VirtualGrid";

interface PlainTableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  hasHead?: boolean;
  minWidth?: number;
  className?: string;
}

export function PlainTable<Row>(props: PlainTableProps<Row>) {
  const { columns, hasHead = true } = props;
  return (
    <Table.ScrollContainer minWidth={props.minWidth ?? 320} className={props.className}>
      <Table aria-label={props.label} stickyHeader={hasHead}>
        {hasHead && (
          <Table.Thead>
            <Table.Tr>
              {columns.map((column) => (
                <Table.Th key={column.id} ta={column.align}>
                  {column.header}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
        )}
        <Table.Tbody>
          {props.rows.map((row) => (
            <Table.Tr key={props.keyOf(row)}>
              {columns.map((column) => (
                <Table.Td key={column.id} ta={column.align} className={column.align && "number"}>
                  {column.cell(row)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
