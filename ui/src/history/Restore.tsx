// Bringing back: first what will change, in the same view as any difference, then one button.
import { Button, Group, Stack, Text } from "@mantine/core";
import {
  type QueryClient,
  type UseMutationResult,
  type UseQueryResult,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { restore } from "@/api/changes";
import { type Condition, change, type Place, streamAddress, tenantKey } from "@/api/client";
import { asProblem, PRECONDITION_FAILED, Problem } from "@/api/problem";
import { differenceQuery, overviewQuery } from "@/api/queries";
import type { Restoration, RowRestoration, RowRestorationOrder } from "@/api/types";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { Dialog, FormFooter } from "@/parts/dialogs";
import { counted, countText } from "@/parts/formats";
import { Placeholder } from "@/parts/states";
import { tell } from "@/parts/toasts";
import { Moment } from "@/parts/values";
import { type Reason, useReason } from "@/session/reason";
import { FirstRows } from "./ChangedRows";
import { RowDifferenceGrid } from "./RowDifferenceGrid";
import type { RestoreOrder, RowKey } from "./versions";
import "./history.css";

const BECOMES = {
  changed: "changes",
  "brought back": "is restored",
  removed: "is deleted",
} as const;

export function RestoreDialog({ order, onClose }: { order: RestoreOrder; onClose: () => void }) {
  const { place } = usePanel();
  const client = useQueryClient();
  const overview = useQuery(overviewQuery(place));
  const reason = useReason();
  const body = {
    version: order.version,
    streams: order.streams ?? null,
    files: order.files ?? null,
    message: "",
  };
  const effect = useQuery({
    queryKey: [...tenantKey(place), "restore-preview", order],
    queryFn: () => withTag(place, client, () => restore(place, { ...body, dry_run: true }, "only a check")),
    gcTime: 0,
  });
  const restoring = useRestoring(
    effect,
    (condition) => restore(place, { ...body, message: reason.message, dry_run: false }, condition),
    onClose,
  );
  const what = order.streams?.join(", ") ?? order.files?.join(", ") ?? "everything";
  const source = useQuery(overviewQuery(place, order.version));
  const isEmpty = effect.data !== undefined && nothing(effect.data);
  return (
    <RestoreFrame
      title={`Restore ${what} as of version ${order.version}`}
      effect={effect}
      restoring={restoring}
      reason={reason}
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
                {one.rows_before !== one.rows_after &&
                  `: ${countText(one.rows_before)} → ${countText(one.rows_after)} rows`}
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

interface RestoreRowsDialogProps {
  stream: string;
  version: number;
  /** None: all rows that differ between the version and `after`. */
  keys: RowKey[];
  /** The version whose changes are reverted. */
  after?: number;
  onClose: () => void;
}

/** Restore single rows: a preview of each, then one button, which creates one new version. */
export function RestoreRowsDialog(props: RestoreRowsDialogProps) {
  const { stream, version, keys, after, onClose } = props;
  const { place } = usePanel();
  const client = useQueryClient();
  const reason = useReason();
  const order = { version, keys, after: after ?? null, columns: [], message: "" };
  const effect = useQuery({
    queryKey: [...tenantKey(place), "row-restoration", stream, order],
    queryFn: () =>
      withTag(place, client, () => restoreRows(place, stream, { ...order, dry_run: true }, "only a check")),
    gcTime: 0,
  });
  const restoring = useRestoring(
    effect,
    (condition) =>
      restoreRows(place, stream, { ...order, message: reason.message, dry_run: false }, condition),
    onClose,
  );
  const rows = keys.length > 0 ? counted(keys.length, "row") : "all changed rows";
  const later = effect.data?.changed_later ?? 0;
  const changed = effect.data ? changedRows(effect.data) : undefined;
  const isEmpty = changed === 0;
  return (
    <RestoreFrame
      title={`Restore ${rows} of ${stream} as of version ${version}`}
      effect={effect}
      restoring={restoring}
      reason={reason}
      isEmpty={isEmpty}
      emptyText="These rows have not changed since."
      onClose={onClose}
      loadingLabel="Computing the changes"
    >
      {effect.data && !isEmpty && (
        <>
          <Text>{toldEffect(effect.data)}</Text>
          {later > 0 && (
            <Text role="alert" c="var(--mantine-color-error)">
              {counted(later, "row")} changed again after version {after}: restoring reverts these later
              changes too.
            </Text>
          )}
          <FirstRows
            label="What will change"
            rows={effect.data.rows}
            keyNames={effect.data.key}
            total={changed ?? 0}
          />
        </>
      )}
    </RestoreFrame>
  );
}

function changedRows({ counts }: RowRestoration): number {
  return counts.updated + counts.inserted + counts.deleted;
}

function toldEffect(effect: RowRestoration): string {
  const { counts, selected } = effect;
  const unchanged = selected - changedRows(effect);
  const parts = [
    counts.updated > 0 && `${countText(counts.updated)} restored to old values`,
    counts.inserted > 0 && `${countText(counts.inserted)} inserted again`,
    counts.deleted > 0 && `${countText(counts.deleted)} deleted, because they did not exist then`,
    unchanged > 0 && `${countText(unchanged)} unchanged`,
  ].filter(Boolean);
  return `${parts.join(" · ")}.`;
}

interface Done {
  tenant_version: number;
}

type Tagged<T> = T & { etag: string | null };

/** A preview, and the tenant's tag from before it: what changed since is refused, and previewed again. */
export async function withTag<T>(
  place: Place,
  client: QueryClient,
  preview: () => Promise<T>,
): Promise<Tagged<T>> {
  const { etag } = await client.fetchQuery({ ...overviewQuery(place), staleTime: 0 });
  return { ...(await preview()), etag };
}

/** Carries the restoration out if its preview still holds, and ends at the history with the new version. */
export function useRestoring<T extends Done>(
  effect: UseQueryResult<Tagged<T>>,
  act: (condition: Condition) => Promise<T>,
  onClose: () => void,
  done = "Restored",
) {
  const { place, go } = usePanel();
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      act({ "If-Match": effect.data?.etag ?? '""' }).catch((error) => {
        const { status, code, cause, requestId } = asProblem(error);
        if (status !== PRECONDITION_FAILED) throw error;
        const title = "The tenant was changed after this preview was computed.";
        const remedy = "The preview now shows the effect on the current version: go on if it is right.";
        throw new Problem(status, code, title, cause, remedy, requestId);
      }),
    onSuccess: async ({ tenant_version }) => {
      onClose();
      await client.invalidateQueries({ queryKey: tenantKey(place) });
      tell(`${done} as version ${tenant_version}.`);
      go({ ...NOTHING_OPEN, panel: "history" });
    },
  });
}

interface RestoreFrameProps<T extends Done> {
  title: string;
  verb?: string;
  effect: UseQueryResult<Tagged<T>>;
  restoring: UseMutationResult<T, Error, void>;
  reason: Reason;
  isEmpty: boolean;
  /** What is said where there is nothing to do. */
  emptyText: string;
  onClose: () => void;
  loadingLabel?: string;
  children: ReactNode;
}

export function RestoreFrame<T extends Done>(props: RestoreFrameProps<T>) {
  const { title, effect, restoring, reason, isEmpty, emptyText, onClose, loadingLabel, children } = props;
  return (
    <Dialog onClose={onClose} title={title} size="80%">
      <Stack>
        {!effect.data && <Placeholder query={effect} lines={4} label={loadingLabel} />}
        {children}
        <Text c="dimmed">{isEmpty ? emptyText : "This creates a new version. Later versions are kept."}</Text>
        {!isEmpty && reason.field}
        <FormFooter
          sending={restoring}
          verb={props.verb ?? "Restore"}
          disabled={!effect.data || isEmpty || reason.isMissing}
          onAct={restoring.mutate}
          onClose={onClose}
        />
      </Stack>
    </Dialog>
  );
}

/** The restoration of single rows. */
function restoreRows(
  place: Place,
  stream: string,
  order: RowRestorationOrder,
  condition: Condition,
): Promise<RowRestoration> {
  return change("POST", `${streamAddress(place, stream)}/row-restorations`, condition, { body: order });
}
