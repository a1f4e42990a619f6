// Taking back what one version did: cell by cell, so that what came after it stays. First what will happen.
import { Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type Reversion, type ReversionOrder, revert } from "@/api/changes";
import { tenantKey } from "@/api/client";
import type { KeptRow, StreamReversion } from "@/api/types";
import { usePanel } from "@/navigation/panel";
import { counted, countText } from "@/parts/formats";
import { PlainTable } from "@/parts/PlainTable";
import type { Column } from "@/parts/VirtualGrid";
import { valueText } from "@/parts/values";
import { useReason } from "@/session/reason";
import { FirstRows } from "./ChangedRows";
import { RestoreFrame, useRestoring, withTag } from "./Restore";

const KEPT_MAX = 20;

interface UndoDialogProps {
  /** What is undone, in words: `version 12`, `3 rows of Account`. */
  what: string;
  order: ReversionOrder;
  onClose: () => void;
}

export function UndoDialog({ what, order, onClose }: UndoDialogProps) {
  const { place } = usePanel();
  const client = useQueryClient();
  const reason = useReason();
  const effect = useQuery({
    queryKey: [...tenantKey(place), "reversion", order],
    queryFn: () => withTag(place, client, () => revert(place, { ...order, dry_run: true }, "only a check")),
    gcTime: 0,
  });
  const undoing = useRestoring(
    effect,
    (condition) => revert(place, { ...order, message: reason.message }, condition),
    onClose,
    "Undone",
  );
  const isEmpty = effect.data !== undefined && goesBack(effect.data) === 0;
  return (
    <RestoreFrame
      title={`Undo ${what}`}
      verb="Undo"
      effect={effect}
      restoring={undoing}
      reason={reason}
      isEmpty={isEmpty}
      emptyText="Nothing of it is left that can go back."
      onClose={onClose}
      loadingLabel="Computing the changes"
    >
      {effect.data && <Effect effect={effect.data} />}
    </RestoreFrame>
  );
}

/** How many streams and files change. */
export function goesBack({ streams, files_written, files_deleted }: Reversion): number {
  const changing = Object.values(streams).filter((one) => one.fate !== "kept");
  return changing.length + files_written.length + files_deleted.length;
}

function Effect({ effect }: { effect: Reversion }) {
  return (
    <>
      {Object.entries(effect.streams).map(([name, one]) => (
        <StreamEffect key={name} name={name} of={one} />
      ))}
      <Paths title="Files that go back" paths={effect.files_written} />
      <Paths title="New files that go" paths={effect.files_deleted} />
      <Paths title="Files that stay, because they changed again later" paths={effect.files_kept} />
    </>
  );
}

function Paths({ title, paths }: { title: string; paths: readonly string[] }) {
  if (paths.length === 0) return null;
  return (
    <Text>
      {title}: {paths.join(", ")}
    </Text>
  );
}

function StreamEffect({ name, of }: { name: string; of: StreamReversion }) {
  const { updated, inserted, deleted } = of.counts;
  const parts = [
    (of.fate === "brought back" || of.fate === "removed") && FATES[of.fate],
    updated > 0 &&
      `${counted(updated, "row")} ${updated === 1 ? "gets" : "get"} old values${of.cells === null ? "" : ` (${counted(of.cells, "cell")})`}`,
    inserted > 0 && `${counted(inserted, "deleted row")} ${inserted === 1 ? "returns" : "return"}`,
    deleted > 0 && `${counted(deleted, "new row")} ${deleted === 1 ? "goes" : "go"}`,
  ].filter(Boolean);
  const changing = updated + inserted + deleted;
  return (
    <Stack gap={4} component="section" aria-label={name}>
      <Text>
        <strong>{name}</strong>: {parts.join(", ") || of.reason || FATES[of.fate]}
      </Text>
      {of.rows.length > 0 && (
        <FirstRows label={`Rows of ${name} that go back`} rows={of.rows} keyNames={of.key} total={changing} />
      )}
      {of.kept_rows > 0 && <Kept name={name} of={of} />}
    </Stack>
  );
}

const FATES = {
  changed: "changes",
  "brought back": "the stream returns",
  removed: "the stream goes",
  kept: "stays",
} as const;

const KEPT_COLUMNS: Column<[KeptRow, string]>[] = [
  { id: "key", header: "Key", cell: ([row]) => Object.values(row.key).map(valueText).join(", ") },
  { id: "column", header: "Column", cell: ([, column]) => column },
  { id: "before", header: "Before", cell: ([row, column]) => valueText(row.cells[column]?.before) },
  { id: "after", header: "This version", cell: ([row, column]) => valueText(row.cells[column]?.after) },
  { id: "now", header: "Now, stays", cell: ([row, column]) => valueText(row.cells[column]?.now) },
  { id: "reason", header: "Reason", cell: ([row]) => row.reason },
];

/** What a later version changed again: it stays, and is named. */
function Kept({ name, of }: { name: string; of: StreamReversion }) {
  const cells = of.kept.flatMap((row) =>
    Object.keys(row.cells).map((column): [KeptRow, string] => [row, column]),
  );
  return (
    <>
      <Text role="alert">
        {counted(of.kept_rows, "row")} {of.kept_rows === 1 ? "stays" : "stay"} in part or whole, because a
        later version changed {counted(of.kept_cells, "cell")} again:
      </Text>
      <PlainTable
        label={`Cells of ${name} that stay`}
        columns={KEPT_COLUMNS}
        rows={cells.slice(0, KEPT_MAX)}
        keyOf={([row, column]) => JSON.stringify([row.key, column])}
      />
      {cells.length > KEPT_MAX && (
        <Text size="xs" c="dimmed">
          The first {countText(KEPT_MAX)} of {countText(of.kept_cells)} cells are shown.
        </Text>
      )}
    </>
  );
}
