// Rows that differ, wherever they are shown: what became of each, its key, and each changed cell's old and new value.
import { Text } from "@mantine/core";
import { useMemo } from "react";
import type { ChangedRow } from "@/api/types";
import { countText } from "@/parts/formats";
import { type Column, useColumnWidths, VirtualGrid, type VirtualGridProps } from "@/parts/VirtualGrid";
import { DiffCell, FATES, hasNumbers, ROW_CLASSES, valueText, widthOf } from "@/parts/values";
import { keyOfRow } from "./versions";
import "./history.css";

type Row = { index: number; row: ChangedRow };
/** A row of one line, and one whose changed cells have two. */
const LINE = 30;
const TWO_LINES = 46;
const HEAD = 36;
const HEIGHT_MAX = 340;
const SHOWN_MAX = 200;

interface ChangedRowsProps
  extends Pick<
    VirtualGridProps<Row>,
    "total" | "isTotalExact" | "selected" | "onSelect" | "isEvery" | "onNearEnd"
  > {
  label: string;
  rows: readonly ChangedRow[];
  keyNames: readonly string[];
  /** All columns in order; without it those of the rows. */
  columns?: readonly string[];
  /** Also the columns in which nothing changed. */
  isAll?: boolean;
  /** As high as its few rows, in a dialog, and not as its place. */
  isShort?: boolean;
}

export function ChangedRows(props: ChangedRowsProps) {
  const { label, rows: changed, keyNames, columns: names, isAll = false, isShort = false, ...grid } = props;
  const widths = useColumnWidths(label);
  const rows = useMemo(() => changed.map((row, index): Row => ({ index, row })), [changed]);
  const columns = useMemo(
    () => columnsOf(changed, keyNames, names ?? namesOf(changed), isAll),
    [changed, keyNames, names, isAll],
  );
  const rowHeight = changed.some((row) => row.fate === "update") ? TWO_LINES : LINE;
  const shown = (
    <VirtualGrid
      {...grid}
      label={label}
      rows={rows}
      columns={columns}
      keyOf={(one) => String(one.index)}
      nameOf={(one) => Object.values(keyOfRow(one.row, keyNames)).map(valueText).join(" ")}
      rowHeight={rowHeight}
      widths={widths}
      rowClass={(one) => ROW_CLASSES[one.row.fate]}
    />
  );
  if (!isShort) return shown;
  const height = Math.min(HEIGHT_MAX, HEAD + rowHeight * rows.length + 16);
  return (
    <div className="changed-rows" style={{ height }}>
      {shown}
    </div>
  );
}

interface FirstRowsProps extends Pick<ChangedRowsProps, "label" | "rows" | "keyNames"> {
  /** How many rows there are of the change. */
  total: number;
}

/** The first rows of a change, in a dialog. */
export function FirstRows({ label, rows, keyNames, total }: FirstRowsProps) {
  const shown = rows.slice(0, SHOWN_MAX);
  return (
    <>
      <ChangedRows isShort label={label} rows={shown} keyNames={keyNames} />
      {total > shown.length && (
        <Text size="xs" c="dimmed">
          The first {countText(shown.length)} of {countText(total)} rows are shown.
        </Text>
      )}
    </>
  );
}

const fateOf = ({ row }: Row) => FATES[row.fate];

function namesOf(rows: readonly ChangedRow[]): string[] {
  return [...new Set(rows.flatMap((row) => Object.keys({ ...row.before, ...row.after })))];
}

/** The key and what changed; with rows that are new or gone, or on demand, all columns. */
function columnsOf(
  rows: readonly ChangedRow[],
  keyNames: readonly string[],
  names: readonly string[],
  isAll: boolean,
): Column<Row>[] {
  const isWhole = isAll || rows.some((row) => row.fate !== "update");
  const changed = new Set(rows.flatMap((row) => row.changed));
  const isKey = (name: string) => keyNames.includes(name);
  const column = (name: string): Column<Row> => ({
    id: name,
    header: isKey(name) ? `${name} (key)` : name,
    pixels: widthOf(rows, name),
    isPinned: isKey(name),
    ...(hasNumbers(rows, name) && { align: "right" as const }),
    cell: ({ row }) => <DiffCell row={row} name={name} />,
  });
  const others = names.filter((name) => !isKey(name) && (isWhole || changed.has(name)));
  return [
    ...names.filter(isKey).map(column),
    // Where all are changed, their cells say so.
    ...(isWhole ? [{ id: "what", header: "What", pixels: 70, cell: fateOf }] : []),
    ...others.map(column),
  ];
}
