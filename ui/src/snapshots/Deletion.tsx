// Deleting: at once with Undo for a few files, after a question for streams, folders and many items.
import { List, Text } from "@mantine/core";
import { useMutation, useQueries, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  deleteFiles,
  dropStream,
  keepBeside,
  takenPaths,
  unchangedStream,
  undoDeletion,
} from "@/api/changes";
import { type Condition, type Place, tenantKey } from "@/api/client";
import { allFilesQuery, shownTenant } from "@/api/queries";
import { usePanel } from "@/navigation/panel";
import { ConfirmDialog } from "@/parts/dialogs";
import { counted, countText, nameText } from "@/parts/formats";
import { offerUndo, offerWay, tellProblem } from "@/parts/toasts";
import { useReason } from "@/session/reason";
import { besides } from "@/uploads/queue";
import type { Item } from "./items";

const UNASKED_MAX = 20;

interface Removed {
  before: number;
  streams: string[];
  files: string[];
}

export function useDeletion(onDone: () => void) {
  const { place } = usePanel();
  const client = useQueryClient();
  const [asked, setAsked] = useState<readonly Item[]>([]);
  const reason = useReason();
  const refresh = () => client.invalidateQueries({ queryKey: tenantKey(place) });
  const removing = useMutation({
    // One after the other: each rests on what the one before has left.
    scope: { id: tenantKey(place).join("/") },
    mutationFn: (items: readonly Item[]) => removed(place, items, reason.message, shownTenant(client, place)),
    onSuccess: (gone, items) => {
      setAsked([]);
      onDone();
      offerUndo(told(items), () => broughtBack(place, gone, refresh));
    },
    onError: (error) => asked.length === 0 && tellProblem(error),
    onSettled: refresh,
  });

  function ask(items: readonly Item[]) {
    if (items.length === 0) return;
    const isSmall = items.length <= UNASKED_MAX && items.every((item) => item.kind === "file");
    if (isSmall && !reason.isRequired) removing.mutate(items);
    else setAsked(items);
  }

  return { asked, removing, reason, ask, confirm: () => removing.mutate(asked), dismiss: () => setAsked([]) };
}

async function removed(
  place: Place,
  items: readonly Item[],
  message: string,
  condition: Condition,
): Promise<Removed> {
  const gone: Removed = { before: -1, streams: [], files: [] };
  const paths = items.flatMap((item) => (item.kind === "file" ? [item.file.path] : []));
  const folders = items.flatMap((item) => (item.kind === "folder" ? [item.path] : []));
  const streams = items.flatMap((item) => (item.kind === "stream" ? [item.stream] : []));
  const conditions = await Promise.all(
    streams.map((one) => unchangedStream(place, one.stream, one.stream_version)),
  );
  if (paths.length + folders.length > 0) {
    const done = await deleteFiles(place, { paths, folders, message }, condition);
    gone.before = done.tenant_version - 1;
    gone.files.push(...done.paths);
  }
  for (const [at, { stream }] of streams.entries()) {
    const version = (await dropStream(place, stream, message, conditions[at] as Condition)).tenant_version;
    if (gone.before < 0) gone.before = version - 1;
    gone.streams.push(stream);
  }
  return gone;
}

/** Bring back what was deleted; where somebody made a file of it anew, both can be kept. */
async function broughtBack(place: Place, gone: Removed, refresh: () => Promise<void>): Promise<void> {
  try {
    await undoDeletion(place, {
      version: gone.before,
      streams: gone.streams,
      files: gone.files,
      dry_run: false,
      message: "undo of a deletion",
    });
  } catch (error) {
    const refusal =
      gone.files.length > 0 ? await takenPaths(place, gone.files).catch(() => undefined) : undefined;
    if (!refusal) throw error;
    const keepBoth = async () => {
      for (const path of refusal.paths) await keepBeside(place, path, gone.before, besides(path));
      const files = gone.files.filter((path) => !refusal.paths.includes(path));
      if (files.length + gone.streams.length > 0) await broughtBack(place, { ...gone, files }, refresh);
      await refresh();
    };
    offerWay(error, { verb: "Keep both", act: keepBoth });
  }
  await refresh();
}

function told(items: readonly Item[]): string {
  return `Deleted ${items.length === 1 ? items[0]?.name : counted(items.length, "item")}.`;
}

const NAMED_MAX = 12;

/** The question before many items, a folder or a stream go: it names them and the rows. */
export function DeleteDialog({ deletion }: { deletion: ReturnType<typeof useDeletion> }) {
  const { asked } = deletion;
  const { place } = usePanel();
  const folders = asked.flatMap((item) => (item.kind === "folder" ? [item.path] : []));
  const contents = useQueries({ queries: folders.map((folder) => allFilesQuery(place, folder)) });
  const inFolders = (path: string) => {
    const content = contents[folders.indexOf(path)]?.data;
    if (!content) return "folder with its content";
    return `folder, ${content.isWhole ? "" : "at least "}${counted(content.files.length, "file")}`;
  };
  const files =
    asked.filter((item) => item.kind === "file").length +
    contents.reduce((sum, content) => sum + (content.data?.files.length ?? 0), 0);
  const isAtLeast = contents.some((content) => !content.data?.isWhole);
  const streams = asked.filter((item) => item.kind === "stream").length;
  const subject = [
    streams > 0 && counted(streams, "stream"),
    (files > 0 || folders.length > 0) && `${isAtLeast ? "at least " : ""}${counted(files, "file")}`,
  ].filter(Boolean);
  const rows = asked.reduce((sum, item) => sum + (item.kind === "stream" ? item.stream.rows : 0), 0);
  return (
    <ConfirmDialog
      title={`Delete ${subject.join(" and ")}?`}
      verb="Delete"
      sending={deletion.removing}
      disabled={deletion.reason.isMissing}
      onAct={deletion.confirm}
      onClose={deletion.dismiss}
    >
      <List size="sm">
        {asked.slice(0, NAMED_MAX).map((item) => (
          <List.Item key={item.key}>
            {nameText(item.name)}
            {item.kind === "stream" && ` (stream, ${countText(item.stream.rows)} rows)`}
            {item.kind === "folder" && ` (${inFolders(item.path)})`}
          </List.Item>
        ))}
        {asked.length > NAMED_MAX && <List.Item>and {countText(asked.length - NAMED_MAX)} more</List.Item>}
      </List>
      <Text c="dimmed" mt="md">
        {rows > 0 && `${countText(rows)} rows will be deleted. `}You can restore them from the History tab.
      </Text>
      {deletion.reason.field}
    </ConfirmDialog>
  );
}
