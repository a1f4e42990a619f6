// Versions and the rows that they changed, as values (pure).
import type { ChangedRow, RowRestorationOrder, TenantVersion } from "@/api/types";
import { dayText } from "@/parts/formats";

const REQUEST = "request-";

interface Made {
  job_id: string | null;
  who?: string;
}

/** The job that made it; null where it was a request to the service. */
export function jobOf({ job_id }: Made): string | null {
  return job_id?.startsWith(REQUEST) ? null : job_id;
}

export function makerText(made: Made): string {
  return jobOf(made) ?? (made.who || "unknown");
}

type Counted = TenantVersion["streams"][string];

/** The most rows of one stream that any of the versions changed: what all bars are drawn to. */
export function largestChange(versions: readonly TenantVersion[]): number {
  let most = 1;
  for (const version of versions)
    for (const one of Object.values(version.streams))
      most = Math.max(most, one.inserted + one.updated + one.deleted);
  return most;
}

/**
 * How long the parts of a change's bar are, in percent of the longest bar.
 *
 * By the square root of its rows: beside a first load of a million rows a night's thousand are still seen.
 */
export function barParts(
  { inserted, updated, deleted }: Pick<Counted, "inserted" | "updated" | "deleted">,
  most: number,
): { fate: "new" | "changed" | "gone"; percent: number }[] {
  const rows = inserted + updated + deleted;
  if (rows === 0) return [];
  const length = 100 * Math.sqrt(rows / Math.max(most, rows));
  const parts = [
    { fate: "new" as const, percent: (length * inserted) / rows },
    { fate: "changed" as const, percent: (length * updated) / rows },
    { fate: "gone" as const, percent: (length * deleted) / rows },
  ];
  return parts.filter((part) => part.percent > 0);
}

/** What a restoration brings back: streams, files, or without both everything. */
export interface RestoreOrder {
  version: number;
  /** The job or person that made the version. */
  maker?: string;
  streams?: string[];
  files?: string[];
}

export type RowKey = RowRestorationOrder["keys"][number];

/** A key as one text, for an address: the value itself, or a JSON array where it could be misread. */
export function keyText(values: Record<string, unknown>, keyNames: readonly string[]): string {
  const [first, ...others] = keyNames.map((name) => values[name] ?? null);
  const isPlain = others.length === 0 && first !== null && !/^(\[.*|\.{0,2})$/s.test(String(first));
  return isPlain ? String(first) : JSON.stringify([first, ...others]);
}

export function keyOfRow(row: ChangedRow, keyNames: readonly string[]): RowKey {
  const values = (row.fate === "delete" ? row.before : row.after) as RowKey;
  return Object.fromEntries(keyNames.map((name) => [name, values[name] ?? null]));
}

interface Steps {
  /** The version that made the stream what is shown; undefined where it is not known. */
  current: number | undefined;
  earlier: number | undefined;
  later: number | "now" | undefined;
}

/** `versions` are those that changed the stream, the newest first; `shown` undefined is now. */
export function steps(versions: readonly number[], shown: number | undefined): Steps {
  const place = shown === undefined ? 0 : versions.findIndex((one) => one <= shown);
  if (place < 0) return { current: undefined, earlier: undefined, later: versions.at(-1) };
  const later = shown === undefined ? undefined : place <= 1 ? "now" : versions[place - 1];
  return { current: versions[place], earlier: versions[place + 1], later };
}

/** Versions of jobs that ran one after the other and changed nothing. */
export type Folded = readonly TenantVersion[];
export type Entry = string | TenantVersion | Folded;

export function isFolded(item: Entry | undefined): item is Folded {
  return Array.isArray(item);
}

/** The versions; before the first one of each day its name, and several that changed nothing as one entry. */
export function withDays(versions: readonly TenantVersion[], unfolded: ReadonlySet<number>): Entry[] {
  const items: Entry[] = [];
  let before = "";
  for (const version of versions) {
    const day = dayText(version.timestamp);
    const last = items.at(-1);
    const folds = (one: TenantVersion) => one.is_idle && one.tags.length === 0 && !unfolded.has(one.version);
    if (day !== before) items.push(day, version);
    else if (folds(version) && isFolded(last)) items[items.length - 1] = [...last, version];
    else if (folds(version) && typeof last === "object" && !isFolded(last) && folds(last))
      items[items.length - 1] = [last, version];
    else items.push(version);
    before = day;
  }
  return items;
}
