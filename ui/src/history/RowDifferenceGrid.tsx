// The rows of a stream that differ between two versions: new, deleted, and changed with each cell's old and new value.
import { Switch, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { rowDifferenceQuery } from "@/api/queries";
import type { ChangedRow, RowDifference } from "@/api/types";
import { Changes } from "@/parts/Changes";
import { EmptyNote } from "@/parts/EmptyNote";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import { Cell, valueText } from "@/streams/Cell";
import { usePanel } from "@/tenants/panel";

type Row = { index: number; row: ChangedRow };
const FATES = { insert: "new", update: "changed", delete: "deleted" } as const;
const COLUMN_WIDTH = 160;

export function RowDifferenceGrid({
  stream,
  before,
  after,
}: {
  stream: string;
  before: number;
  after: number;
}) {
  const { place } = usePanel();
  const [isAll, setAll] = useState(false);
  const difference = useInfiniteQuery(rowDifferenceQuery(place, stream, before, after));
  const first = difference.data?.pages[0];
  const rows = useMemo(
    () =>
      (difference.data?.pages ?? []).flatMap((page) => page.rows).map((row, index): Row => ({ index, row })),
    [difference.data],
  );
  const columns = useMemo(() => (first ? columnsOf(first, isAll) : []), [first, isAll]);
  if (difference.isPending) return <LateSkeleton />;
  if (difference.isError)
    return <ProblemNote error={difference.error} onRetry={() => difference.refetch()} />;
  if (!first || rows.length === 0) return <EmptyNote title={`No row of ${stream} differs.`} />;
  return (
    <>
      <div className="bar">
        <Changes counts={first.counts} />
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
        rowHeight={30}
        total={first.total}
        minWidth={(columns.length - 1) * COLUMN_WIDTH + 90}
        rowClass={(one) =>
          one.row.fate === "insert" ? "row-new" : one.row.fate === "delete" ? "row-gone" : ""
        }
        onNearEnd={() => {
          if (difference.hasNextPage && !difference.isFetchingNextPage) void difference.fetchNextPage();
        }}
      />
    </>
  );
}

function Schema({ difference }: { difference: RowDifference }) {
  const added = Object.entries(difference.columns_added).map(([name, type]) => `${name} (${type}) was added`);
  const dropped = Object.keys(difference.columns_dropped).map((name) => `${name} was dropped`);
  if (added.length + dropped.length === 0) return null;
  return <Text size="sm">Schema: {[...added, ...dropped].join(", ")}.</Text>;
}

/** The key and what changed; with rows that are new or gone, or on demand, all columns. */
function columnsOf(difference: RowDifference, isAll: boolean): Column<Row>[] {
  const { counts } = difference;
  const shown = difference.columns.filter(
    (name) =>
      isAll ||
      counts.inserted + counts.deleted > 0 ||
      difference.key.includes(name) ||
      difference.changed[name],
  );
  return [
    { id: "fate", header: "What", width: "70px", cell: ({ row }) => FATES[row.fate] },
    ...shown.map(
      (name): Column<Row> => ({
        id: name,
        header: difference.key.includes(name) ? `${name} (key)` : name,
        width: `minmax(${COLUMN_WIDTH - 12}px, 1fr)`,
        cell: ({ row }) => <DiffCell row={row} name={name} />,
      }),
    ),
  ];
}

function DiffCell({ row, name }: { row: ChangedRow; name: string }) {
  if (row.fate === "delete") return <Cell value={row.before[name]} />;
  if (!row.changed.includes(name)) return <Cell value={row.after[name]} />;
  const [old, fresh] = [valueText(row.before[name]), valueText(row.after[name])];
  return (
    <span className="cell-changed" title={`${old} → ${fresh}`}>
      <del>{old}</del>
      <ins>{fresh}</ins>
    </span>
  );
}
