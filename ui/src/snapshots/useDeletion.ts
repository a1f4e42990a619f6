// Deleting: at once with Undo for a few files, after a question for streams, folders and many items.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { deleteFile, dropStream, restore } from "@/api/changes";
import { get } from "@/api/client";
import { type Place, tenantAddress, tenantKey } from "@/api/place";
import { asProblem } from "@/api/problem";
import type { FilePage } from "@/api/types";
import { countText } from "@/parts/formats";
import { offerUndo, tellProblem } from "@/parts/toasts";
import { usePanel } from "@/tenants/panel";
import type { Item } from "./items";

const UNASKED_MAX = 20;
const NOT_FOUND = 404;

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
  const files = items.flatMap((item) => (item.kind === "file" ? [item.file.path] : []));
  for (const item of items) if (item.kind === "folder") files.push(...(await filesBelow(place, item.path)));
  for (const path of files) {
    const version = await deleteFile(place, path).then((done) => done.tenant_version, missing);
    if (version === undefined) continue;
    if (gone.before < 0) gone.before = version - 1;
    gone.files.push(path);
  }
  for (const item of items) {
    if (item.kind !== "stream") continue;
    const version = (await dropStream(place, item.name)).tenant_version;
    if (gone.before < 0) gone.before = version - 1;
    gone.streams.push(item.name);
  }
  return gone;
}

/** All files below a folder, the mark of an empty one included. */
async function filesBelow(place: Place, folder: string): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | null = null;
  do {
    const page: FilePage = await get<FilePage>(`${tenantAddress(place)}/files`, {
      folder,
      recursive: true,
      cursor,
    });
    found.push(...page.files.map((file) => file.path));
    if (cursor === null) found.push(...[folder, ...page.folders].map((one) => `${one}/_folder`));
    cursor = page.next_cursor;
  } while (cursor !== null);
  return found;
}

function broughtBack(place: Place, gone: Removed): Promise<unknown> {
  return restore(place, {
    version: gone.before,
    streams: gone.streams,
    files: gone.files,
    dry_run: false,
    message: "undo of a deletion",
  });
}

/** Of a file that somebody else has deleted meanwhile, or a mark that never was, there is no version to tell. */
function missing(error: unknown): undefined {
  if (asProblem(error).status !== NOT_FOUND) throw error;
}

function told(items: readonly Item[]): string {
  return items.length === 1 ? `Deleted ${items[0]?.name}.` : `Deleted ${countText(items.length)} items.`;
}
