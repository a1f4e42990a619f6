// The rows of a stream that differ between two versions: new, deleted, and changed with each cell's old and new value.
import { Button, Switch, Text } from "@mantine/core";
import { useEffect, useMemo, useState } from "react";
import { rowDifferenceQuery, useList } from "@/api/queries";
import type { ChangedRow, RowDifference } from "@/api/types";
import { usePanel } from "@/navigation/panel";
import { counted, countText } from "@/parts/formats";
import { EmptyNote, Placeholder } from "@/parts/states";
import { type Column, useColumnWidths, VirtualGrid } from "@/parts/VirtualGrid";
import { Changes, DiffCell, FATES, hasNumbers, ROW_CLASSES, valueText, widthOf } from "@/parts/values";
import { keyOfRow, type RowKey } from "./versions";

type Row = { index: number; row: ChangedRow };
/** A row of one line, and one whose changed cells have two. */
const LINE = 30;
const TWO_LINES = 46;
const NONE: ReadonlySet<string> = new Set();

interface RowDifferenceGridProps {
  stream: string;
  before: number;
  after: number;
  /** Restores the ticked rows (none: all that differ); without it no row can be ticked. */
  onRestoreRows?: (keys: RowKey[]) => void;
}

export function RowDifferenceGrid({ stream, before, after, onRestoreRows }: RowDifferenceGridProps) {
  const { place } = usePanel();
  const widths = useColumnWidths(stream);
  const [isAll, setAll] = useState(false);
  const [ticked, setTicked] = useState<ReadonlySet<string>>(NONE);
  // All rows that differ, also those that are not fetched: the service finds them.
  const [isEvery, setEvery] = useState(false);
  const wanted = rowDifferenceQuery(place, stream, before, after);
  const { query, entries, more } = useList(wanted, (page) => page.rows);
  const first = query.data?.pages[0];
  const rows = useMemo(() => entries.map((row, index): Row => ({ index, row })), [entries]);
  const columns = useMemo(() => (first ? columnsOf(first, rows, isAll) : []), [first, rows, isAll]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other versions have other rows
  useEffect(() => select(NONE), [stream, before, after]);
  function select(keys: ReadonlySet<string>) {
    setTicked(keys);
    setEvery(false);
  }
  if (!first) return <Placeholder query={query} />;
  if (rows.length === 0)
    return (
      <>
        <Schema difference={first} />
        <EmptyNote title={`No row of ${stream} differs.`} />
      </>
    );
  const isTickable = onRestoreRows !== undefined && first.key.length > 0;
  const all = first.is_total_exact ? `all ${countText(first.total)}` : "all rows that differ";
  const isMore = query.hasNextPage && !isEvery && ticked.size === rows.length;
  const selected = isEvery ? new Set(rows.map((one) => String(one.index))) : ticked;
  return (
    <>
      <div className="bar">
        {first.is_total_exact ? (
          <Changes counts={first.counts} />
        ) : (
          <Text>At least {countText(first.total)} rows differ.</Text>
        )}
        <Schema difference={first} />
        <Switch
          size="xs"
          ml="auto"
          label="All columns"
          checked={isAll}
          onChange={(event) => setAll(event.currentTarget.checked)}
        />
      </div>
      <VirtualGrid
        label={`Rows of ${stream} that differ`}
        rows={rows}
        columns={columns}
        keyOf={(one) => String(one.index)}
        nameOf={(one) => nameOf(one.row, first.key)}
        rowHeight={rows.some((one) => one.row.fate === "update") ? TWO_LINES : LINE}
        total={first.total}
        isTotalExact={first.is_total_exact}
        widths={widths}
        {...(isTickable && { selected, onSelect: select, isEvery })}
        rowClass={(one) => ROW_CLASSES[one.row.fate]}
        onNearEnd={more}
      />
      {selected.size > 0 && (
        <section className="selection-bar" aria-label="Selection">
          <span role="status">
            {isEvery ? all.replace("all", "All") : countText(ticked.size)}
            {!isEvery && query.hasNextPage && first.is_total_exact && ` of ${countText(first.total)}`}{" "}
            selected
          </span>
          {isMore && <Button onClick={() => setEvery(true)}>Select {all}</Button>}
          <Button
            variant="filled"
            onClick={() =>
              onRestoreRows?.(
                isEvery
                  ? []
                  : rows
                      .filter((one) => ticked.has(String(one.index)))
                      .map((one) => keyOfRow(one.row, first.key)),
              )
            }
          >
            Restore {isEvery ? all : counted(ticked.size, "row")}…
          </Button>
          <Button variant="subtle" ml="auto" onClick={() => select(NONE)}>
            Clear
          </Button>
        </section>
      )}
    </>
  );
}

function nameOf(row: ChangedRow, keyNames: readonly string[]): string {
  return Object.values(keyOfRow(row, keyNames)).map(valueText).join(" ");
}

function Schema({ difference }: { difference: RowDifference }) {
  const added = Object.entries(difference.columns_added).map(([name, type]) => `${name} (${type}) was added`);
  const dropped = Object.keys(difference.columns_dropped).map((name) => `${name} was dropped`);
  const retyped = Object.entries(difference.columns_retyped).map(
    ([name, [old, fresh]]) => `${name} was ${old} and is ${fresh}`,
  );
  const told = [...added, ...dropped, ...retyped];
  return told.length === 0 ? null : <Text>Schema: {told.join(", ")}.</Text>;
}

/** The key and what changed; with rows that are new or gone, or on demand, all columns. */
function columnsOf(difference: RowDifference, rows: readonly Row[], isAll: boolean): Column<Row>[] {
  const isWhole = isAll || rows.some((one) => one.row.fate !== "update");
  const changed = new Set(rows.flatMap((one) => one.row.changed));
  const shown = difference.columns.filter(
    (name) => isWhole || difference.key.includes(name) || changed.has(name),
  );
  const isKey = (name: string) => difference.key.includes(name);
  const values = rows.map((one) => one.row);
  const column = (name: string): Column<Row> => ({
    id: name,
    header: isKey(name) ? `${name} (key)` : name,
    pixels: widthOf(values, name),
    isPinned: isKey(name),
    ...(hasNumbers(values, name) && { align: "right" as const }),
    cell: ({ row }) => <DiffCell row={row} name={name} />,
  });
  return [
    ...shown.filter(isKey).map(column),
    { id: "what", header: "What", pixels: 70, cell: ({ row }) => FATES[row.fate] },
    ...shown.filter((name) => !isKey(name)).map(column),
  ];
}
