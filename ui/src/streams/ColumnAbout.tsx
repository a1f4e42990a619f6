// What a column holds, from its head: first what the log knows, then what reading the column tells.
import { ActionIcon, Popover, Text } from "@mantine/core";
import { IconInfoCircle } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { ColumnStatistics, StreamStatistics } from "@/api/types";
import { usePanel } from "@/navigation/panel";
import { Cell } from "@/parts/Cell";
import { countText } from "@/parts/formats";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { shareText } from "./SchemaView";
import { statisticsQuery } from "./stream-queries";

interface ColumnAboutProps {
  stream: string;
  name: string;
  tabIndex: number;
}

export function ColumnAbout({ stream, name, tabIndex }: ColumnAboutProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom" shadow="md" trapFocus returnFocus>
      <Popover.Target>
        <ActionIcon
          size="xs"
          variant="subtle"
          color="gray"
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
  if (!known || !column)
    return read.isLoadingError ? (
      <ProblemNote error={read.error} onRetry={() => void read.refetch()} />
    ) : (
      <LateSkeleton lines={4} label="Reading the column" />
    );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what the focus is given to when it opens
    <div className="column-facts" tabIndex={0} data-autofocus>
      <Text fw={600} size="sm">
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
