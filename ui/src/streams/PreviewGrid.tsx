// Rows of a stream, of which the pages are read that one looks at, under conditions that are chips.
import { Button, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { asProblem } from "@/api/problem";
import { streamQuery } from "@/api/queries";
import { keyText } from "@/history/row-keys";
import { usePanel } from "@/navigation/panel";
import { Cell, isNumeric } from "@/parts/Cell";
import { EmptyNote } from "@/parts/EmptyNote";
import { countText } from "@/parts/formats";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { sortFrom, sortText } from "@/parts/sorting";
import { useColumnWidths } from "@/parts/useColumnWidths";
import { type Column, type Sort, VirtualGrid } from "@/parts/VirtualGrid";
import { ColumnAbout } from "./ColumnAbout";
import { ColumnMenu } from "./ColumnMenu";
import { Conditions } from "./Conditions";
import { GoTo } from "./GoTo";
import { LISTED_MAX, placeOfKey, SORTED_MAX } from "./stream-queries";
import { type Row, usePages } from "./usePages";

const COLUMN_WIDTH = 148;
const COLUMN_WIDTH_MAX = 300;
const LETTER_WIDTH = 7.5;
const TYPE_WIDTH = 88;

export function PreviewGrid({ stream }: { stream: string }) {
  const { place, search, version, go } = usePanel();
  const where = search.where ?? [];
  const chosen = search.columns ?? [];
  const sort = search.by ? sortFrom(search.by, "") : undefined;
  const choice = { where, columns: chosen, version, sort };
  const pages = usePages(place, stream, choice);
  const { first, rows, total, isTotalExact } = pages;
  const [target, setTarget] = useState<{ index: number }>();
  const widths = useColumnWidths(stream);
  const detail = useQuery(streamQuery(place, stream));
  const names = first.data?.columns;
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
    () => columnsOf(stream, names ?? [], types, detail.data?.key ?? []),
    [stream, names, types, detail.data],
  );

  function openRow({ values }: Row) {
    if (keyNames.every((name) => name in values)) go({ row: keyText(values, keyNames) });
  }

  async function find(key: string) {
    const found = await placeOfKey(place, stream, choice, { name: keyNames[0] ?? "", text: key });
    // Only the order of the key has a place for it.
    if (sort) go({ by: undefined }, true);
    return found;
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
          <GoTo
            count={rows.length}
            keyName={keyNames[0]}
            onIndex={(index) => setTarget({ index })}
            find={find}
          />
          <ColumnMenu
            all={all}
            shown={chosen.length > 0 ? chosen : all}
            keyNames={keyNames}
            onChange={(next) => go({ columns: next.length > 0 ? next : undefined })}
          />
        </Group>
      </Group>
      {first.isLoadingError ? (
        <ProblemNote
          error={first.error}
          {...(asProblem(first.error).status >= 500 ? { onRetry: () => void first.refetch() } : {})}
        />
      ) : first.isPending ? (
        <LateSkeleton lines={10} />
      ) : rows.length === 0 ? (
        <EmptyNote title={where.length > 0 ? "No row meets these conditions." : "The stream has no rows."} />
      ) : (
        <VirtualGrid
          label={`Rows of ${stream}`}
          rows={rows}
          columns={columns}
          keyOf={(row) => String(row.index)}
          rowHeight={28}
          total={total}
          isTotalExact={isTotalExact}
          widths={widths}
          target={target}
          {...(sort && { sort })}
          onSort={(column) => go({ by: nextSort(sort, column) }, true)}
          {...(keyNames.length > 0 && { onOpen: openRow })}
          onVisible={pages.onVisible}
        />
      )}
      {pages.broken && (
        <ProblemNote error={pages.broken.error} onRetry={() => void pages.broken?.refetch()} />
      )}
      <Text size="xs" c="dimmed" role="status">
        {first.data &&
          !first.isLoadingError &&
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

function toldCount(total: number, isTotalExact: boolean, isFiltered: boolean, isSorted: boolean): string {
  const count = `${isTotalExact ? "" : "At least "}${countText(total)} rows${isFiltered ? " meet the conditions" : ""}`;
  const most = isSorted ? SORTED_MAX : LISTED_MAX;
  return total > most
    ? `${count}; the first ${countText(most)} are shown${isSorted ? " in this order" : ": filter by the key for others"}`
    : count;
}

/** Names of columns often differ at their ends alone, so a long one makes its column wider. */
function widthOf(name: string): number {
  const wanted = Math.ceil(name.length * LETTER_WIDTH) + TYPE_WIDTH;
  return Math.min(COLUMN_WIDTH_MAX, Math.max(COLUMN_WIDTH, wanted));
}

function columnsOf(
  stream: string,
  names: readonly string[],
  types: ReadonlyMap<string, string>,
  keyNames: readonly string[],
): Column<Row>[] {
  // What a row is named by stays in view, so it comes first.
  const ordered = [
    ...keyNames.filter((name) => names.includes(name)),
    ...names.filter((name) => !keyNames.includes(name)),
  ];
  return ordered.map((name) => {
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
      about: (tabIndex) => <ColumnAbout stream={stream} name={name} tabIndex={tabIndex} />,
      pixels: widthOf(name),
      isPinned: keyNames.includes(name),
      ...(isNumeric(type) ? { align: "right" as const } : {}),
      cell: (row) => <Cell value={row.values[name]} type={type} />,
    };
  });
}
