// Single rows brought back: first what becomes of each, then one button; the result is one new version.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { tenantKey } from "@/api/place";
import type { RowRestoration } from "@/api/types";
import { usePanel } from "@/navigation/panel";
import { countText } from "@/parts/formats";
import { ChangedRowsTable } from "./ChangedRowsTable";
import { restoreRows } from "./history-queries";
import { RestoreFrame, useRestoring } from "./RestoreFrame";
import type { RowKey } from "./row-keys";

const SHOWN_MAX = 200;

interface RestoreRowsDialogProps {
  stream: string;
  version: number;
  keys: RowKey[];
  /** Only these cells of the rows. */
  columns?: readonly string[];
  onClose: () => void;
}

export function RestoreRowsDialog({ stream, version, keys, columns = [], onClose }: RestoreRowsDialogProps) {
  const { place } = usePanel();
  const order = { version, keys, columns: [...columns], message: "" };
  const effect = useQuery({
    queryKey: [...tenantKey(place), "row-restoration", stream, version, keys, columns],
    queryFn: () => restoreRows(place, stream, { ...order, dry_run: true }),
    gcTime: 0,
  });
  const restoring = useRestoring(() => restoreRows(place, stream, { ...order, dry_run: false }), onClose);
  const rows = `${countText(keys.length)} ${keys.length === 1 ? "row" : "rows"}`;
  const count = columns.length > 0 ? `${columns.join(", ")} in ${rows}` : rows;
  const isEmpty = effect.data?.rows.length === 0;
  return (
    <RestoreFrame
      title={`Restore ${count} of ${stream} as of version ${version}`}
      effect={effect}
      restoring={restoring}
      isEmpty={isEmpty}
      emptyText="These rows have not changed since."
      onClose={onClose}
      loadingLabel="Computing the changes"
    >
      {effect.data && !isEmpty && (
        <>
          <Text size="sm">{toldEffect(effect.data, keys.length)}</Text>
          <ChangedRowsTable
            label="What will change"
            rows={effect.data.rows.slice(0, SHOWN_MAX)}
            keyNames={effect.data.key}
          />
          {effect.data.rows.length > SHOWN_MAX && (
            <Text size="xs" c="dimmed">
              The first {countText(SHOWN_MAX)} of {countText(effect.data.rows.length)} rows are shown.
            </Text>
          )}
        </>
      )}
    </RestoreFrame>
  );
}

function toldEffect({ counts, rows }: RowRestoration, chosen: number): string {
  const parts = [
    counts.updated > 0 && `${countText(counts.updated)} restored to old values`,
    counts.inserted > 0 && `${countText(counts.inserted)} inserted again`,
    counts.deleted > 0 && `${countText(counts.deleted)} deleted, because they did not exist then`,
    chosen > rows.length && `${countText(chosen - rows.length)} unchanged`,
  ].filter(Boolean);
  return `${parts.join(" · ")}.`;
}
