// Deleting: at once with Undo for a few files, after a question for streams, folders and many items.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { deleteFiles, dropStream, undoDeletion } from "@/api/changes";
import { type Place, tenantKey } from "@/api/place";
import { usePanel } from "@/navigation/panel";
import { countText } from "@/parts/formats";
import { offerUndo, tellProblem } from "@/parts/toasts";
import type { Item } from "./items";

const UNASKED_MAX = 20;

export interface Deletion {
  /** What the dialog asks about; empty: it is closed. */
  asked: readonly Item[];
  isRunning: boolean;
  ask: (items: readonly Item[]) => void;
  confirm: () => void;
  dismiss: () => void;
}

interface Removed {
  before: number;
  streams: string[];
  files: string[];
}

export function useDeletion(onDone: () => void): Deletion {
  const { place } = usePanel();
  const client = useQueryClient();
  const [asked, setAsked] = useState<readonly Item[]>([]);
  const refresh = () => client.invalidateQueries({ queryKey: tenantKey(place) });
  const removing = useMutation({
    mutationFn: (items: readonly Item[]) => removed(place, items),
    onSuccess: (gone, items) => {
      setAsked([]);
      onDone();
      offerUndo(told(items), () => broughtBack(place, gone).then(refresh));
    },
    onError: tellProblem,
    onSettled: refresh,
  });

  function ask(items: readonly Item[]) {
    if (items.length === 0) return;
    const isSmall = items.length <= UNASKED_MAX && items.every((item) => item.kind === "file");
    if (isSmall) removing.mutate(items);
    else setAsked(items);
  }

  return {
    asked,
    isRunning: removing.isPending,
    ask,
    confirm: () => removing.mutate(asked),
    dismiss: () => setAsked([]),
  };
}

async function removed(place: Place, items: readonly Item[]): Promise<Removed> {
  const gone: Removed = { before: -1, streams: [], files: [] };
  const paths = items.flatMap((item) => (item.kind === "file" ? [item.file.path] : []));
  const folders = items.flatMap((item) => (item.kind === "folder" ? [item.path] : []));
  if (paths.length + folders.length > 0) {
    const done = await deleteFiles(place, { paths, folders });
    gone.before = done.tenant_version - 1;
    gone.files.push(...done.paths);
  }
  for (const item of items) {
    if (item.kind !== "stream") continue;
    const version = (await dropStream(place, item.name)).tenant_version;
    if (gone.before < 0) gone.before = version - 1;
    gone.streams.push(item.name);
  }
  return gone;
}

function broughtBack(place: Place, gone: Removed): Promise<unknown> {
  return undoDeletion(place, {
    version: gone.before,
    streams: gone.streams,
    files: gone.files,
    dry_run: false,
    message: "undo of a deletion",
  });
}

function told(items: readonly Item[]): string {
  return items.length === 1 ? `Deleted ${items[0]?.name}.` : `Deleted ${countText(items.length)} items.`;
}
