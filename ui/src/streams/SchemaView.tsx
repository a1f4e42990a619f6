// A stream's columns: Delta's types, the key, and what the columns hold.
import { Badge, Button, Group, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { streamQuery } from "@/api/queries";
import type { ColumnStatistics, StreamStatistics } from "@/api/types";
import { usePanel } from "@/navigation/panel";
import { Cell, isNumeric } from "@/parts/Cell";
import { countText } from "@/parts/formats";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { statisticsQuery } from "./stream-queries";

export function SchemaView({ stream }: { stream: string }) {
  const { place, version } = usePanel();
  const detail = useQuery(streamQuery(place, stream));
  const statistics = useQuery(statisticsQuery(place, stream, { version }));
  if (statistics.isPending || detail.isPending) return <LateSkeleton label="Reading the columns" />;
  if (statistics.isLoadingError)
    return <ProblemNote error={statistics.error} onRetry={() => statistics.refetch()} />;
  const { columns, rows } = statistics.data;
  const isUnread = columns.some((one) => one.rows_read === 0) && rows > 0;
  const undecided = new Set(detail.data?.columns.filter((one) => one.is_undecided).map((one) => one.name));
  return (
    <>
      <Table.ScrollContainer minWidth={680} className="schema">
        <Table aria-label={`Columns of ${stream}`} stickyHeader>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Column</Table.Th>
              <Table.Th>Type</Table.Th>
              <Table.Th ta="right">Missing</Table.Th>
              <Table.Th ta="right">Distinct</Table.Th>
              <Table.Th ta="right">Smallest</Table.Th>
              <Table.Th ta="right">Greatest</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {columns.map((column) => (
              <ColumnRow
                key={column.name}
                column={column}
                rows={rows}
                isKey={detail.data?.key.includes(column.name) ?? false}
                isUndecided={undecided.has(column.name)}
              />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      <Group gap="sm">
        <Text size="xs" c="dimmed" role="status">
          {toldReach(statistics.data)}
        </Text>
        {isUnread && (
          <Button
            size="compact-xs"
            variant="default"
            loading={statistics.isFetching}
            onClick={() => statistics.refetch()}
          >
            Read more columns
          </Button>
        )}
      </Group>
    </>
  );
}

interface ColumnRowProps {
  column: ColumnStatistics;
  rows: number;
  isKey: boolean;
  isUndecided: boolean;
}

function ColumnRow({ column, rows, isKey, isUndecided }: ColumnRowProps) {
  const isRead = column.rows_read > 0 || rows === 0;
  const ofRows = column.nulls_of_all ? rows : column.rows_read;
  const end = (value: unknown) =>
    isRead && value !== null ? (
      <EndValue value={value} type={column.type} isOfAll={column.ends_of_all} />
    ) : null;
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap={6} wrap="nowrap">
          <span>{column.name}</span>
          {isKey && <Badge size="xs">key</Badge>}
        </Group>
      </Table.Td>
      <Table.Td className="mono">{isUndecided ? "no type: no value yet" : column.type}</Table.Td>
      <Table.Td ta="right" className="number">
        {column.nulls !== null && ofRows > 0 && (
          <span title={`${countText(column.nulls)} of ${countText(ofRows)} rows`}>
            {shareText(column.nulls, ofRows)}
          </span>
        )}
      </Table.Td>
      <Table.Td ta="right" className="number">
        {isRead && column.distinct !== null && (
          <span
            title={column.rows_read < rows ? `In the first ${countText(column.rows_read)} rows` : undefined}
          >
            {column.rows_read < rows && "≥ "}
            {countText(column.distinct)}
          </span>
        )}
      </Table.Td>
      <Table.Td ta="right">{end(column.low)}</Table.Td>
      <Table.Td ta="right">{end(column.high)}</Table.Td>
    </Table.Tr>
  );
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
  return `Statistics of the first ${countText(read)} of ${countText(rows)} rows; missing values are counted in all rows if the log has the counts.`;
}

export function shareText(part: number, whole: number): string {
  if (part === 0) return "0 %";
  const share = (100 * part) / whole;
  if (share < 0.1) return "< 0.1 %";
  return `${share === 100 || share >= 10 ? Math.floor(share) : share.toFixed(1)} %`;
}
