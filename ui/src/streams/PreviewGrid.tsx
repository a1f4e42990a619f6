// Rows of a stream, some hundreds at a time as one scrolls, under conditions that are chips.
import { ActionIcon, Button, Group, Pill, Select, Text, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { rowsQuery, streamQuery } from "@/api/queries";
import { EmptyNote } from "@/parts/EmptyNote";
import { countText } from "@/parts/formats";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import { usePanel } from "@/tenants/panel";
import { Cell, isNumeric } from "./Cell";

type Row = { index: number; values: Record<string, unknown> };
const COLUMN_WIDTH = 150;
const COMPARISONS = ["=", "!=", "<", "<=", ">", ">=", "is null", "is not null"];

export function PreviewGrid({ stream }: { stream: string }) {
  const { place, search, version, go } = usePanel();
  const where = search.where ?? [];
  const rows = useInfiniteQuery(rowsQuery(place, stream, { where, columns: [], version }));
  const detail = useQuery(streamQuery(place, stream));
  const first = rows.data?.pages[0];
  const names = first?.columns;
  const types = useMemo(
    () => new Map(detail.data?.columns.map((one) => [one.name, one.type])),
    [detail.data],
  );
  const columns = useMemo(() => columnsOf(names ?? [], types), [names, types]);
  const shown = useMemo(
    () =>
      (rows.data?.pages ?? []).flatMap((page) => page.rows).map((values, index): Row => ({ index, values })),
    [rows.data],
  );
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = rows;

  return (
    <>
      <Conditions
        columns={names ?? []}
        where={where}
        onChange={(next) => go({ where: next.length > 0 ? next : undefined })}
      />
      {rows.isError ? (
        <ProblemNote error={rows.error} onRetry={() => rows.refetch()} />
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
          total={first?.total ?? 0}
          minWidth={columns.length * COLUMN_WIDTH}
          onNearEnd={() => {
            if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
          }}
        />
      )}
      <Text size="xs" c="dimmed" role="status">
        {first && `${countText(first.total)} rows${where.length > 0 ? " meet the conditions" : ""}`}
      </Text>
    </>
  );
}

function columnsOf(names: readonly string[], types: ReadonlyMap<string, string>): Column<Row>[] {
  return names.map((name) => ({
    id: name,
    header: <span title={types.get(name)}>{name}</span>,
    width: `minmax(${COLUMN_WIDTH - 12}px, 1fr)`,
    ...(isNumeric(types.get(name)) ? { align: "right" as const } : {}),
    cell: (row) => <Cell value={row.values[name]} />,
  }));
}

interface ConditionsProps {
  columns: readonly string[];
  where: readonly string[];
  onChange: (where: string[]) => void;
}

function Conditions({ columns, where, onChange }: ConditionsProps) {
  const [isOpen, setOpen] = useState(false);
  const [column, setColumn] = useState<string | null>(null);
  const [comparison, setComparison] = useState<string | null>("=");
  const [value, setValue] = useState("");
  const needsValue = !comparison?.startsWith("is");

  function add(event: FormEvent) {
    event.preventDefault();
    if (!column || !comparison) return;
    onChange([...where, needsValue ? `${column} ${comparison} ${value}` : `${column} ${comparison}`]);
    setValue("");
    setOpen(false);
  }

  return (
    <Group gap="xs">
      {where.map((condition) => (
        <Pill
          key={condition}
          withRemoveButton
          removeButtonProps={{ "aria-label": `Remove the condition ${condition}` }}
          onRemove={() => onChange(where.filter((one) => one !== condition))}
        >
          {condition}
        </Pill>
      ))}
      {isOpen ? (
        <form onSubmit={add}>
          <Group gap={4}>
            <Select
              size="xs"
              w={150}
              aria-label="Column"
              placeholder="Column"
              searchable
              autoFocus
              data={[...columns]}
              value={column}
              onChange={setColumn}
            />
            <Select
              size="xs"
              w={100}
              aria-label="Comparison"
              data={COMPARISONS}
              value={comparison}
              onChange={setComparison}
              allowDeselect={false}
            />
            {needsValue && (
              <TextInput
                size="xs"
                w={150}
                aria-label="Value"
                placeholder="Value"
                value={value}
                onChange={(event) => setValue(event.currentTarget.value)}
              />
            )}
            <Button size="xs" type="submit" disabled={!column}>
              Filter
            </Button>
          </Group>
        </form>
      ) : (
        <ActionIcon
          variant="default"
          size="sm"
          aria-label="Add a filter"
          onClick={() => setOpen(true)}
          disabled={columns.length === 0}
        >
          <IconPlus size={14} />
        </ActionIcon>
      )}
    </Group>
  );
}
