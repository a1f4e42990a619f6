// What two tenants do not have in common (pure).
import type { FileEntry, Overview, StreamDetail, StreamOverview } from "@/api/types";

export interface StreamPair {
  name: string;
  left: StreamOverview | undefined;
  right: StreamOverview | undefined;
}

/** The streams of either, by name. */
export function streamPairs(left: Overview, right: Overview): StreamPair[] {
  const there = (one: Overview) => new Map(one.streams.map((stream) => [stream.stream, stream]));
  const [lefts, rights] = [there(left), there(right)];
  return [...new Set([...lefts.keys(), ...rights.keys()])]
    .sort()
    .map((name) => ({ name, left: lefts.get(name), right: rights.get(name) }));
}

/** In words what differs between the columns and keys of two streams; empty where nothing does. */
export function columnDifferences(
  left: StreamDetail,
  right: StreamDetail,
  names: [string, string],
): string[] {
  const types = (one: StreamDetail) => new Map(one.columns.map((column) => [column.name, column.type]));
  const [lefts, rights] = [types(left), types(right)];
  const told: string[] = [];
  for (const [name, type] of lefts) {
    const other = rights.get(name);
    if (other === undefined) told.push(`${name} is in ${names[0]} only`);
    else if (other !== type) told.push(`${name} is ${type} and ${other}`);
  }
  for (const name of rights.keys()) if (!lefts.has(name)) told.push(`${name} is in ${names[1]} only`);
  if (left.key.join() !== right.key.join())
    told.push(`the key is ${left.key.join(", ") || "missing"} and ${right.key.join(", ") || "missing"}`);
  return told;
}

export interface FilePair {
  path: string;
  kind: "left" | "right" | "differs" | "sealed";
}

/** Files that only one has or that differ, and how many are the same; of sealed ones nobody can tell. */
export function filePairs(left: readonly FileEntry[], right: readonly FileEntry[]): [FilePair[], number] {
  const rights = new Map(right.map((file) => [file.path, file]));
  const pairs: FilePair[] = [];
  let same = 0;
  for (const file of left) {
    const other = rights.get(file.path);
    rights.delete(file.path);
    if (other === undefined) pairs.push({ path: file.path, kind: "left" });
    else if (file.sealed || other.sealed) pairs.push({ path: file.path, kind: "sealed" });
    else if (file.sha256 === other.sha256) same += 1;
    else pairs.push({ path: file.path, kind: "differs" });
  }
  pairs.push(...[...rights.keys()].map((path): FilePair => ({ path, kind: "right" })));
  return [pairs.sort((one, other) => (one.path < other.path ? -1 : 1)), same];
}
