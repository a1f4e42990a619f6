// A stream's columns: Delta's types, the key, and what the columns hold.
import { Badge, Button, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { streamQuery } from "@/api/queries";
import type { ColumnStatistics, StreamStatistics } from "@/api/types";
import { usePanel } from "@/navigation/panel";
import { countText } from "@/parts/formats";
import { PlainTable } from "@/parts/PlainTable";
import { Placeholder } from "@/parts/states";
import type { Column } from "@/parts/VirtualGrid";
import { Cell, isNumeric } from "@/parts/values";
import { statisticsQuery } from "./stream-queries";

export function SchemaView({ stream }: { stream: string }) {
  const { place, version } = usePanel();
  const detail = useQuery(streamQuery(place, stream));
  const statistics = useQuery(statisticsQuery(place, stream, { version }));
  if (!statistics.data || detail.isPending)
    return <Placeholder query={statistics} label="Reading the columns" />;
  const { columns, rows } = statistics.data;
  const isUnread = columns.some((one) => one.rows_read === 0) && rows > 0;
  const undecided = new Set(detail.data?.columns.filter((one) => one.is_undecided).map((one) => one.name));
  return (
    <>
      <PlainTable
        label={`Columns of ${stream}`}
        columns={columnsOf(rows, detail.data?.key ?? [], undecided)}
        rows={columns}
        keyOf={(column) => column.name}
        minWidth={680}
        className="schema"
      />
      <Group gap="sm">
        <Text size="xs" c="dimmed" role="status">
          {toldReach(statistics.data)}
        </Text>
        {isUnread && (
          <Button size="compact-xs" loading={statistics.isFetching} onClick={() => statistics.refetch()}>
            Read more columns
          </Button>
        )}
      </Group>
    </>
  );
}

function columnsOf(
  rows: number,
  key: readonly string[],
  undecided: ReadonlySet<string>,
): Column<ColumnStatistics>[] {
  const isRead = (column: ColumnStatistics) => column.rows_read > 0 || rows === 0;
  const end = (column: ColumnStatistics, value: unknown) =>
    isRead(column) && value !== null ? (
      <EndValue value={value} type={column.type} isOfAll={column.ends_of_all} />
    ) : null;
  return [
    {
      id: "name",
      header: "Column",
      cell: ({ name }) => (
        <>
          {name} {key.includes(name) && <Badge size="xs">key</Badge>}
        </>
      ),
    },
    {
      id: "type",
      header: "Type",
      cell: ({ name, type }) => (
        <span className="mono">{undecided.has(name) ? "undecided: no value yet" : type}</span>
      ),
    },
    {
      id: "missing",
      header: "Missing",
      align: "right",
      cell: (column) => {
        const ofRows = column.nulls_of_all ? rows : column.rows_read;
        if (column.nulls === null || ofRows === 0) return null;
        const counts = `${countText(column.nulls)} of ${countText(ofRows)} rows`;
        return <span title={counts}>{shareText(column.nulls, ofRows)}</span>;
      },
    },
    {
      id: "distinct",
      header: "Distinct",
      align: "right",
      cell: (column) => {
        if (!isRead(column) || column.distinct === null) return null;
        if (column.rows_read >= rows) return countText(column.distinct);
        const reach = `In the first ${countText(column.rows_read)} rows`;
        return <span title={reach}>≥ {countText(column.distinct)}</span>;
      },
    },
    { id: "low", header: "Smallest", align: "right", cell: (column) => end(column, column.low) },
    { id: "high", header: "Greatest", align: "right", cell: (column) => end(column, column.high) },
  ];
}

function EndValue({ value, type, isOfAll }: { value: unknown; type: string; isOfAll: boolean }) {
  return (
    <span
      className={isNumeric(type) ? "schema-end number" : "schema-end"}
      title={`${String(value)}${isOfAll ? "" : ", of the rows read"}`}
    >
      <Cell value={value} type={type} />
    </span>
  );
}

function toldReach({ columns, rows }: StreamStatistics): string {
  const read = Math.max(0, ...columns.map((one) => one.rows_read));
  if (read >= rows) return `Statistics of all ${countText(rows)} rows.`;
  return `Statistics of the first ${countText(read)} of ${countText(rows)} rows; missing values are counted in all rows where the log has statistics.`;
}

export function shareText(part: number, whole: number): string {
  if (part === 0) return "0 %";
  const share = (100 * part) / whole;
  if (share < 0.1) return "< 0.1 %";
  return `${share === 100 || share >= 10 ? Math.floor(share) : share.toFixed(1)} %`;
}
