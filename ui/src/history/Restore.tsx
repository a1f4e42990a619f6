// Bringing back: first what will change, in the same view as any difference, then one button.
import { Button, Group, Stack, Text } from "@mantine/core";
import {
  type UseMutationResult,
  type UseQueryResult,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { restore } from "@/api/changes";
import { call, type Place, streamAddress, tenantKey } from "@/api/client";
import { differenceQuery, overviewQuery } from "@/api/queries";
import type { ChangedRow, Restoration, RowRestoration, RowRestorationOrder } from "@/api/types";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { Dialog, FormFooter } from "@/parts/dialogs";
import { counted, countText } from "@/parts/formats";
import { PlainTable } from "@/parts/PlainTable";
import { Placeholder } from "@/parts/states";
import { tell } from "@/parts/toasts";
import type { Column } from "@/parts/VirtualGrid";
import { DiffCell, FATES, hasNumbers, Moment, ROW_CLASSES } from "@/parts/values";
import { RowDifferenceGrid } from "./RowDifferenceGrid";
import type { RestoreOrder } from "./Timeline";
import type { RowKey } from "./versions";
import "./history.css";

const BECOMES = {
  changed: "changes",
  "brought back": "is restored",
  removed: "is deleted",
} as const;

export function RestoreDialog({ order, onClose }: { order: RestoreOrder; onClose: () => void }) {
  const { place } = usePanel();
  const overview = useQuery(overviewQuery(place));
  const body = {
    version: order.version,
    streams: order.streams ?? null,
    files: order.files ?? null,
    message: "",
  };
  const effect = useQuery({
    queryKey: [...tenantKey(place), "restore-preview", order],
    queryFn: () => restore(place, { ...body, dry_run: true }),
    gcTime: 0,
  });
  const restoring = useRestoring(() => restore(place, { ...body, dry_run: false }), onClose);
  const what = order.streams?.join(", ") ?? order.files?.join(", ") ?? "everything";
  const source = useQuery(overviewQuery(place, order.version));
  const isEmpty = effect.data !== undefined && nothing(effect.data);
  return (
    <RestoreFrame
      title={`Restore ${what} as of version ${order.version}`}
      effect={effect}
      restoring={restoring}
      isEmpty={isEmpty}
      emptyText="Everything is already as it was in that version."
      onClose={onClose}
    >
      {source.data?.timestamp && (
        <Text>
          {what === "everything" ? "Everything" : what} as of version {order.version}
          {order.maker && `, after ${order.maker}`}: <Moment at={source.data.timestamp} isDated />.
        </Text>
      )}
      {effect.data && <Effect effect={effect.data} now={overview.data?.version} />}
    </RestoreFrame>
  );
}

function Effect({ effect, now }: { effect: Restoration; now: number | undefined }) {
  const streams = Object.entries(effect.streams);
  const [shown, setShown] = useState<string | undefined>(streams.length === 1 ? streams[0]?.[0] : undefined);
  return (
    <>
      {streams.map(([name, one]) => (
        <Group key={name} gap="sm">
          <Text>
            <strong>{name}</strong> {BECOMES[one.fate]}
            {one.fate === "changed" && (
              <>
                : {countText(one.rows_before)} → {countText(one.rows_after)} rows
                {now !== undefined && <Counts stream={name} before={now} after={effect.version} />}
              </>
            )}
            {one.fate === "brought back" && ` with ${countText(one.rows_after)} rows`}
            {one.fate === "removed" && `: its ${countText(one.rows_before)} rows did not exist then`}
          </Text>
          {streams.length > 1 && (
            <Button size="compact-xs" onClick={() => setShown(shown === name ? undefined : name)}>
              {shown === name ? "Hide the rows" : "Show the rows"}
            </Button>
          )}
        </Group>
      ))}
      {effect.files_written.length > 0 && <Text>Restored files: {effect.files_written.join(", ")}</Text>}
      {effect.files_deleted.length > 0 && <Text>Deleted files: {effect.files_deleted.join(", ")}</Text>}
      {shown && now !== undefined && (
        <div className="restore-rows">
          <RowDifferenceGrid stream={shown} before={now} after={effect.version} />
        </div>
      )}
    </>
  );
}

/** The numbers of rows that are inserted, deleted and updated, as the service counts them in a difference. */
function Counts({ stream, before, after }: { stream: string; before: number; after: number }) {
  const { place } = usePanel();
  const difference = useQuery(differenceQuery(place, before, after));
  const counts = difference.data?.streams[stream];
  if (!counts) return null;
  const parts = [
    counts.inserted > 0 && `${countText(counts.inserted)} are inserted again`,
    counts.deleted > 0 && `${countText(counts.deleted)} are deleted`,
    counts.updated > 0 && `${countText(counts.updated)} get their old values`,
  ].filter(Boolean);
  return parts.length > 0 ? ` (${parts.join(", ")})` : null;
}

function nothing(effect: Restoration): boolean {
  return Object.keys(effect.streams).length + effect.files_written.length + effect.files_deleted.length === 0;
}

const SHOWN_MAX = 200;

interface RestoreRowsDialogProps {
  stream: string;
  version: number;
  keys: RowKey[];
  /** Only these cells of the rows. */
  columns?: readonly string[];
  onClose: () => void;
}

/** Restore single rows: a preview of each, then one button, which creates one new version. */
export function RestoreRowsDialog({ stream, version, keys, columns = [], onClose }: RestoreRowsDialogProps) {
  const { place } = usePanel();
  const order = { version, keys, columns: [...columns], message: "" };
  const effect = useQuery({
    queryKey: [...tenantKey(place), "row-restoration", stream, version, keys, columns],
    queryFn: () => restoreRows(place, stream, { ...order, dry_run: true }),
    gcTime: 0,
  });
  const restoring = useRestoring(() => restoreRows(place, stream, { ...order, dry_run: false }), onClose);
  const rows = counted(keys.length, "row");
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
          <Text>{toldEffect(effect.data, keys.length)}</Text>
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

interface Done {
  tenant_version: number;
}

/** Carries the restoration out, and ends at the history with the version that it made. */
function useRestoring<T extends Done>(act: () => Promise<T>, onClose: () => void) {
  const { place, go } = usePanel();
  const client = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: async (done) => {
      onClose();
      await client.invalidateQueries({ queryKey: tenantKey(place) });
      tell(`Restored as version ${done.tenant_version}.`);
      go({ ...NOTHING_OPEN, panel: "history" });
    },
  });
}

interface RestoreFrameProps<T extends Done> {
  title: string;
  effect: UseQueryResult<T>;
  restoring: UseMutationResult<T, Error, void>;
  isEmpty: boolean;
  /** What is said where there is nothing to do. */
  emptyText: string;
  onClose: () => void;
  loadingLabel?: string;
  children: ReactNode;
}

function RestoreFrame<T extends Done>(props: RestoreFrameProps<T>) {
  const { title, effect, restoring, isEmpty, emptyText, onClose, loadingLabel, children } = props;
  return (
    <Dialog onClose={onClose} title={title} size="80%">
      <Stack>
        {!effect.data && <Placeholder query={effect} lines={4} label={loadingLabel} />}
        {children}
        <Text c="dimmed">{isEmpty ? emptyText : "This creates a new version. Later versions are kept."}</Text>
        <FormFooter
          sending={restoring}
          verb="Restore"
          disabled={!effect.data || isEmpty}
          onAct={restoring.mutate}
          onClose={onClose}
        />
      </Stack>
    </Dialog>
  );
}

interface ChangedRowsTableProps {
  label: string;
  rows: readonly ChangedRow[];
  keyNames: readonly string[];
}

/** Some rows that differ, as a table: the key first, then the columns in which something changed. */
export function ChangedRowsTable({ label, rows, keyNames }: ChangedRowsTableProps) {
  const isKey = (name: string) => keyNames.includes(name);
  const changed = new Set(rows.flatMap((row) => row.changed));
  const names = [...new Set(rows.flatMap((row) => Object.keys({ ...row.before, ...row.after })))];
  const rank = (name: string) => (isKey(name) ? 0 : changed.has(name) ? 1 : 2);
  const shown = names.sort((one, other) => rank(one) - rank(other));
  const columns: Column<ChangedRow>[] = [
    { id: "", header: "What", cell: (row) => FATES[row.fate] },
    ...shown.map((name) => ({
      id: name,
      header: isKey(name) ? `${name} (key)` : name,
      ...(hasNumbers(rows, name) && { align: "right" as const }),
      cell: (row: ChangedRow) => <DiffCell row={row} name={name} />,
    })),
  ];
  return (
    <PlainTable
      label={label}
      columns={columns}
      rows={rows}
      keyOf={(row) =>
        JSON.stringify([row.fate, ...keyNames.map((name) => row.after[name] ?? row.before[name])])
      }
      rowClass={(row) => ROW_CLASSES[row.fate]}
      minWidth={Math.min(1200, 90 + shown.length * 130)}
      maxHeight={300}
      className="examples"
    />
  );
}

/** The restoration of single rows. */
function restoreRows(place: Place, stream: string, order: RowRestorationOrder): Promise<RowRestoration> {
  return call("POST", `${streamAddress(place, stream)}/row-restorations`, { body: order });
}
