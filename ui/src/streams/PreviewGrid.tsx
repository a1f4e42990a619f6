// Rows of a stream, some hundreds at a time as one scrolls, under conditions that are chips.
import { Button, Group, Text } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { asProblem } from "@/api/problem";
import { rowsQuery, streamQuery } from "@/api/queries";
import { keyText } from "@/history/row-keys";
import { usePanel } from "@/navigation/panel";
import { Cell, isNumeric } from "@/parts/Cell";
import { EmptyNote } from "@/parts/EmptyNote";
import { countText } from "@/parts/formats";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { sortFrom, sortText } from "@/parts/sorting";
import { type Column, type Sort, VirtualGrid } from "@/parts/VirtualGrid";
import { ColumnMenu } from "./ColumnMenu";
import { Conditions } from "./Conditions";
import { SORTED_MAX, sortedRowsQuery } from "./stream-queries";

type Row = { index: number; values: Record<string, unknown> };
const COLUMN_WIDTH = 148;
const COLUMN_WIDTH_MAX = 300;
const COLUMN_GAP = 12;
const LETTER_WIDTH = 7.5;
const TYPE_WIDTH = 64;
const BY_KEY: Sort = { column: "", isDown: false };

export function PreviewGrid({ stream }: { stream: string }) {
  const { place, search, version, go } = usePanel();
  const where = search.where ?? [];
  const chosen = search.columns ?? [];
  const sort = search.by ? sortFrom(search.by, "") : undefined;
  const choice = { where, columns: chosen, version };
  const byKey = useInfiniteQuery({ ...rowsQuery(place, stream, choice), enabled: sort === undefined });
  const byColumn = useInfiniteQuery({
    ...sortedRowsQuery(place, stream, sort ?? BY_KEY, choice),
    enabled: sort !== undefined,
  });
  const rows = sort ? byColumn : byKey;
  const detail = useQuery(streamQuery(place, stream));
  const pages = useMemo(
    () => (sort ? byColumn.data?.pages : byKey.data?.pages) ?? [],
    [sort, byColumn.data, byKey.data],
  );
  const first = pages[0];
  const names = first?.columns;
  const types = useMemo(
    () => new Map(detail.data?.columns.map((one) => [one.name, one.type])),
    [detail.data],
  );
  const keyNames = detail.data?.key ?? [];
  // A past version may have had columns that are gone.
  const all = useMemo(
    () => [...new Set([...(detail.data?.columns.map((one) => one.name) ?? []), ...(names ?? [])])],
    [detail.data, names],
  );
  const columns = useMemo(
    () => columnsOf(names ?? [], types, detail.data?.key ?? []),
    [names, types, detail.data],
  );
  const shown = useMemo(
    () => pages.flatMap((page) => page.rows).map((values, index): Row => ({ index, values })),
    [pages],
  );
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = rows;
  // Rows under conditions may not have been counted: each page then knows of more, and the last one of all.
  const latest = pages.at(-1);
  const total = latest?.total ?? 0;
  const isTotalExact = latest !== undefined && isExact(latest);

  function openRow({ values }: Row) {
    if (keyNames.every((name) => name in values)) go({ row: keyText(values, keyNames) });
  }

  return (
    <>
      <Group gap="xs">
        <Conditions
          columns={all}
          types={types}
          where={where}
          onChange={(next) => go({ where: next.length > 0 ? next : undefined })}
        />
        <Group gap="xs" ml="auto">
          {sort && (
            <Button size="compact-xs" variant="default" onClick={() => go({ by: undefined })}>
              {keyNames.length > 0 ? "Order by key" : "Leave unsorted"}
            </Button>
          )}
          <ColumnMenu
            all={all}
            shown={chosen.length > 0 ? chosen : all}
            keyNames={keyNames}
            onChange={(next) => go({ columns: next.length > 0 ? next : undefined })}
          />
        </Group>
      </Group>
      {rows.isLoadingError ? (
        <ProblemNote
          error={rows.error}
          {...(asProblem(rows.error).status >= 500 ? { onRetry: () => void rows.refetch() } : {})}
        />
      ) : rows.isPending ? (
        <LateSkeleton lines={10} />
      ) : shown.length === 0 ? (
        <EmptyNote title={where.length > 0 ? "No row meets these conditions." : "The stream has no rows."} />
      ) : (
        <VirtualGrid
          label={`Rows of ${stream}`}
          rows={shown}
          columns={columns}
          keyOf={(row) => String(row.index)}
          rowHeight={28}
          total={total}
          isTotalExact={isTotalExact}
          minWidth={columns.reduce((sum, column) => sum + widthOf(column.id) + COLUMN_GAP, 0)}
          {...(sort && { sort })}
          onSort={(column) => go({ by: nextSort(sort, column) }, true)}
          {...(keyNames.length > 0 && { onOpen: openRow })}
          onNearEnd={() => {
            if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
          }}
        />
      )}
      <Text size="xs" c="dimmed" role="status">
        {first &&
          !rows.isLoadingError &&
          toldCount(total, isTotalExact, where.length > 0, sort !== undefined)}
      </Text>
    </>
  );
}

/** Up, then down, then the order of the key again. */
function nextSort(sort: Sort | undefined, column: string): string | undefined {
  if (sort?.column !== column) return sortText({ column, isDown: false });
  return sort.isDown ? undefined : sortText({ column, isDown: true });
}

/** Rows in the order of a column are always counted. */
function isExact(page: object): boolean {
  return !("is_total_exact" in page) || page.is_total_exact === true;
}

function toldCount(total: number, isTotalExact: boolean, isFiltered: boolean, isSorted: boolean): string {
  const count = `${isTotalExact ? "" : "At least "}${countText(total)} rows${isFiltered ? " meet the conditions" : ""}`;
  return isSorted && total > SORTED_MAX
    ? `${count}; the first ${countText(SORTED_MAX)} are shown in this order`
    : count;
}

/** Names of columns often differ at their ends alone, so a long one makes its column wider. */
function widthOf(name: string): number {
  const wanted = Math.ceil(name.length * LETTER_WIDTH) + TYPE_WIDTH;
  return Math.min(COLUMN_WIDTH_MAX, Math.max(COLUMN_WIDTH, wanted));
}

function columnsOf(
  names: readonly string[],
  types: ReadonlyMap<string, string>,
  keyNames: readonly string[],
): Column<Row>[] {
  return names.map((name) => {
    const type = types.get(name);
    return {
      id: name,
      isSortable: type === undefined || !/^(struct|array|map)/.test(type),
      header: (
        <span className="column-head" title={`${name}: ${type}`}>
          <span>{name}</span>
          <small>{keyNames.includes(name) ? `key · ${type}` : type}</small>
        </span>
      ),
      width: `minmax(${widthOf(name)}px, 1fr)`,
      ...(isNumeric(type) ? { align: "right" as const } : {}),
      cell: (row) => <Cell value={row.values[name]} type={type} />,
    };
  });
}
