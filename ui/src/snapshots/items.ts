// What a folder of a tenant shows: folders, streams (at the top only) and files, as one list (pure).
import type { FileEntry, FilePage, StreamOverview } from "@/api/types";
import { sorted } from "@/parts/sorting";
import type { Sort } from "@/parts/VirtualGrid";

export type Item =
  | { kind: "folder"; key: string; name: string; path: string }
  | { kind: "stream"; key: string; name: string; stream: StreamOverview }
  | { kind: "file"; key: string; name: string; file: FileEntry };

const RANKS: Record<Item["kind"], number> = { folder: 0, stream: 1, file: 2 };

export function itemsOf(
  folder: string,
  pages: readonly FilePage[],
  streams: readonly StreamOverview[],
): Item[] {
  const folders = pages.flatMap((page) => page.folders);
  const files = pages.flatMap((page) => page.files);
  return [
    ...folders.map((path): Item => ({ kind: "folder", key: `folder ${path}`, name: lastPart(path), path })),
    ...(folder === "" ? streams : []).map(
      (stream): Item => ({ kind: "stream", key: `stream ${stream.stream}`, name: stream.stream, stream }),
    ),
    ...files.map(
      (file): Item => ({ kind: "file", key: `file ${file.path}`, name: lastPart(file.path), file }),
    ),
  ];
}

/** The items whose names contain the text, sorted within their kinds. */
export function shownItems(items: readonly Item[], find: string, sort: Sort): Item[] {
  const wanted = find.toLowerCase();
  const found = items.filter((item) => item.name.toLowerCase().includes(wanted));
  const value = (item: Item) => valueIn(item, sort.column);
  return sorted(found, value, sort.isDown).sort((one, other) => RANKS[one.kind] - RANKS[other.kind]);
}

export function lastPart(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** "a/b/c" as the folders that lead to it: a, a/b, a/b/c. */
export function crumbsOf(path: string): { name: string; path: string }[] {
  const parts = path === "" ? [] : path.split("/");
  return parts.map((name, depth) => ({ name, path: parts.slice(0, depth + 1).join("/") }));
}

/** When it last changed; undefined for a folder. */
export function changedAt(item: Item): string | undefined {
  if (item.kind === "folder") return undefined;
  return item.kind === "file" ? item.file.modified : item.stream.last?.timestamp;
}

function valueIn(item: Item, column: string): string | number | null {
  if (column === "size")
    return item.kind === "file" ? item.file.size : item.kind === "stream" ? item.stream.size_bytes : null;
  if (column === "rows") return item.kind === "stream" ? item.stream.rows : null;
  if (column === "changed") {
    const at = changedAt(item);
    return at === undefined ? null : Date.parse(at);
  }
  return item.name;
}
