// Rows of a stream, of which the pages are read that one looks at, under conditions that are chips.
import { ActionIcon, Button, Group, Popover, Text } from "@mantine/core";
import { IconInfoCircle } from "@tabler/icons-react";
import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import type { Place } from "@/api/client";
import { streamQuery } from "@/api/queries";
import type { ColumnStatistics, StreamStatistics } from "@/api/types";
import { keyText } from "@/history/versions";
import { usePanel } from "@/navigation/panel";
import { countText } from "@/parts/formats";
import { sortFrom, sortText } from "@/parts/sorting";
import { EmptyNote, Placeholder, ProblemNote } from "@/parts/states";
import { type Column, type Sort, useColumnWidths, VirtualGrid } from "@/parts/VirtualGrid";
import { Cell, isNumeric } from "@/parts/values";
import { ColumnMenu, Conditions, GoTo } from "./controls";
import { shareText } from "./SchemaView";
import {
  LISTED_MAX,
  placeOfKey,
  ROWS_PAGE,
  type RowsChoice,
  rowsPageQuery,
  SORTED_MAX,
  statisticsQuery,
} from "./stream-queries";

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
            <Button size="compact-xs" onClick={() => go({ by: undefined })}>
              {keyNames.length > 0 ? "Order by key" : "Remove the order"}
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
      {!first.data ? (
        <Placeholder query={first} lines={10} />
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
    ? `${count}; the first ${countText(most)} are shown${isSorted ? " in this order" : ". Filter by the key to see others."}`
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

interface Row {
  index: number;
  values: Record<string, unknown>;
}

/** The rows of a list that can be entered anywhere: of its pages those are read that are seen. */
function usePages(place: Place, stream: string, choice: RowsChoice) {
  const [seen, setSeen] = useState<readonly number[]>([0]);
  // Of rows that nobody counted each page knows only of one more: what was seen decides.
  const first = useQuery({
    ...rowsPageQuery(place, stream, choice, 0),
    placeholderData: keepPreviousData,
  });
  const pages = seen.filter((page) => page > 0);
  const others = useQueries({ queries: pages.map((page) => rowsPageQuery(place, stream, choice, page)) });
  const loaded = others.map((one) => one.data);
  const parts = [first.data, ...loaded].filter((one) => one !== undefined);
  const exact = parts.find((one) => one.isTotalExact);
  const total = exact?.total ?? Math.max(0, ...parts.map((one) => one.total));
  const most = choice.sort ? SORTED_MAX : LISTED_MAX;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the pages that were read, one by one
  const rows = useMemo(() => {
    const found = new Array<Row | undefined>(Math.min(total, most));
    for (const [place, part] of [first.data, ...loaded].entries()) {
      const begin = (place === 0 ? 0 : (pages[place - 1] ?? 0)) * ROWS_PAGE;
      for (const [offset, values] of (part?.rows ?? []).entries()) {
        if (begin + offset < found.length) found[begin + offset] = { index: begin + offset, values };
      }
    }
    return found;
  }, [first.data, total, most, pages.join(), ...loaded]);

  const onVisible = useCallback((from: number, to: number) => {
    const low = Math.floor(Math.max(0, from) / ROWS_PAGE);
    // The page that follows is read before its first row is seen.
    const high = Math.floor((to + ROWS_PAGE / 4) / ROWS_PAGE);
    const wanted = Array.from({ length: high - low + 1 }, (_, place) => low + place);
    setSeen((before) => (before.join() === wanted.join() ? before : wanted));
  }, []);

  const broken = others.find((one) => one.isLoadingError);
  return { first, rows, total, isTotalExact: exact !== undefined, onVisible, broken };
}

interface ColumnAboutProps {
  stream: string;
  name: string;
  tabIndex: number;
}

/** What a column holds, from its head: first what the log knows, then what reading the column tells. */
function ColumnAbout({ stream, name, tabIndex }: ColumnAboutProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom" shadow="md" trapFocus returnFocus>
      <Popover.Target>
        <ActionIcon
          size="xs"
          tabIndex={tabIndex}
          className="column-about"
          aria-label={`Values of ${name}`}
          onClick={() => setOpen(!isOpen)}
        >
          <IconInfoCircle size={13} />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown aria-label={`Values of ${name}`}>
        {isOpen && <Facts stream={stream} name={name} />}
      </Popover.Dropdown>
    </Popover>
  );
}

function Facts({ stream, name }: { stream: string; name: string }) {
  const { place, version } = usePanel();
  const choice = { version, columns: [name] };
  const log = useQuery(statisticsQuery(place, stream, { ...choice, isLogOnly: true }));
  const read = useQuery(statisticsQuery(place, stream, choice));
  const known = read.data ?? log.data;
  const column = known?.columns[0];
  if (!known || !column) return <Placeholder query={read} lines={4} label="Reading the column" />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what the focus is given to when it opens
    <div className="column-facts" tabIndex={0} data-autofocus>
      <Text fw={600}>
        {name} <small className="dim">{column.type}</small>
      </Text>
      <dl>
        {facts(column, known).map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Text size="xs" c="dimmed" role="status">
        {read.isPending ? "From the statistics; the column is being read." : reach(column, known)}
      </Text>
    </div>
  );
}

function facts(column: ColumnStatistics, { rows }: StreamStatistics): [string, ReactNode][] {
  const ofRows = column.nulls_of_all ? rows : column.rows_read;
  const end = (value: unknown) => <Cell value={value} type={column.type} />;
  const found: [string, ReactNode][] = [];
  if (column.nulls !== null && ofRows > 0)
    found.push([
      "Missing",
      `${countText(column.nulls)} of ${countText(ofRows)} (${shareText(column.nulls, ofRows)})`,
    ]);
  if (column.distinct !== null)
    found.push(["Distinct", `${column.rows_read < rows ? "≥ " : ""}${countText(column.distinct)}`]);
  if (column.low !== null) found.push(["Smallest", end(column.low)]);
  if (column.high !== null) found.push(["Greatest", end(column.high)]);
  return found;
}

function reach(column: ColumnStatistics, { rows }: StreamStatistics): string {
  return column.rows_read >= rows
    ? `Of all ${countText(rows)} rows.`
    : `Of the first ${countText(column.rows_read)} of ${countText(rows)} rows.`;
}
