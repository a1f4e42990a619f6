// What the chart shows of a tenant's versions, and which of them lie in a time that was chosen (pure).
import type { GrowthPoint, TenantVersion } from "@/api/types";

export interface ChartPoint {
  version: number;
  at: number;
  rows: number;
  bytes: number;
}

type Counted = TenantVersion["streams"][string];

export interface Period {
  from: number;
  to: number;
}

export function chartPoints(points: readonly GrowthPoint[]): ChartPoint[] {
  return points.map((point) => ({
    version: point.version,
    at: Date.parse(point.timestamp),
    rows: point.rows,
    bytes: point.stream_bytes + point.file_bytes,
  }));
}

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

export function within(versions: readonly TenantVersion[], period: Period | null): readonly TenantVersion[] {
  if (period === null) return versions;
  return versions.filter((one) => {
    const at = Date.parse(one.timestamp);
    return period.from <= at && at <= period.to;
  });
}

/** Where a chart of up to that many bytes ends, and its steps: three or four of 1, 2, 4, 8 ... units. */
export function bytesAxis(most: number): { max: number; interval: number } {
  const interval = 2 ** Math.max(0, Math.ceil(Math.log2(most / 3)));
  return { max: interval * Math.max(1, Math.ceil(most / interval)), interval };
}

/** Where a chart of up to that many rows ends: twice 1, 2 or 5 times a power of ten, so that its half is round. */
export function countAxis(most: number): { max: number } {
  const half = Math.max(1, most / 2);
  const power = 10 ** Math.floor(Math.log10(half));
  const factor = [1, 2, 5, 10].find((one) => one * power >= half) ?? 10;
  return { max: 2 * factor * power };
}

/** An SVG path through points, level until the next one. */
export function stepsPath(points: readonly (readonly [x: number, y: number])[]): string {
  return points.map(([x, y], place) => (place === 0 ? `M${x},${y}` : `H${x}V${y}`)).join("");
}

const DAY_MS = 86_400_000;
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Labels along a time, at both ends and between them; the last ones are set so that they do not stick out. */
export function timeTicks(
  from: number,
  to: number,
  most: number,
): { at: number; label: string; anchor: "start" | "middle" | "end" }[] {
  const count = Math.max(2, Math.min(6, most));
  const format = to - from > 3 * DAY_MS ? day : to - from > DAY_MS / 4 ? moment : time;
  return Array.from({ length: count }, (_, place) => {
    const at = from + ((to - from) * place) / (count - 1);
    return {
      at,
      label: format.format(at),
      anchor: place === 0 ? "start" : place === count - 1 ? "end" : "middle",
    };
  });
}

/** A period as the address has it: `1700000000000-1700003600000`. */
export function periodText(period: Period): string {
  return `${Math.round(period.from)}-${Math.round(period.to)}`;
}

/** The period of an address; null where it is none. */
export function periodFrom(text: string | undefined): Period | null {
  // 13 digits are enough until the year 2286; more may be no moment.
  const found = /^(\d{1,13})-(\d{1,13})$/.exec(text ?? "");
  if (!found) return null;
  const [from, to] = [Number(found[1]), Number(found[2])];
  return from <= to ? { from, to } : null;
}

const moment = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** A period for people: "20 Nov, 14:05 to 21 Nov, 09:00", within a day to the second. */
export function periodLabel({ from, to }: Period): string {
  const [begin, end] = [new Date(from), new Date(to)];
  const isOneDay = begin.toDateString() === end.toDateString();
  return `${isOneDay ? time.format(begin) : moment.format(begin)} to ${isOneDay ? time.format(end) : moment.format(end)}`;
}
