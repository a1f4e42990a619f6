// Numbers, sizes and moments as text: grouped digits, binary units, "3 min ago" beside the exact time.

const grouped = new Intl.NumberFormat("en-US");
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const STEPS: [limitSeconds: number, unitSeconds: number, name: string][] = [
  [90, 1, "s"],
  [90 * 60, 60, "min"],
  [36 * 3600, 3600, "h"],
  [60 * 86400, 86400, "d"],
  [730 * 86400, 30.44 * 86400, "mo"],
];

export function countText(count: number | string): string {
  return grouped.format(typeof count === "string" ? BigInt(count) : count);
}

/** "1 row", "2 rows". */
export function counted(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? "" : "s"}`;
}

export function bytesText(bytes: number): string {
  let unit = 0;
  let size = bytes;
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : size < 10 ? size.toFixed(1) : Math.round(size)} ${UNITS[unit]}`;
}

const INVISIBLE = /[\p{Cc}\p{Cf}\u2028\u2029]|(?<=^|[ ]) | (?=$)/gu;
const CLOCK_SECONDS = 60;

/** "3 min ago", "in 2 h", "now"; whole numbers only. */
export function agoText(moment: string, now: number = Date.now()): string {
  const seconds = (now - Date.parse(moment)) / 1000;
  const distance = Math.abs(seconds);
  // The page's clock ticks every 20 seconds and may be behind the server's: what has just happened is no future.
  if (distance < 5 || (seconds < 0 && distance < CLOCK_SECONDS)) return "now";
  const [, unit, name] = STEPS.find(([limit]) => distance < limit) ?? [0, 365.25 * 86400, "y"];
  const text = `${Math.round(distance / unit)} ${name}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

/** "20 Nov 2026, 14:05:09 UTC" in the given zone (default: the reader's own). */
export function exactText(moment: string, timeZone?: string): string {
  return new Intl.DateTimeFormat("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hour12: false,
    timeZoneName: "short",
    timeZone,
  }).format(new Date(moment));
}

/** The reader's time zone: "Europe/Zurich (GMT+1)". */
export function zoneText(): string {
  const format = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });
  const short = format.formatToParts().find((part) => part.type === "timeZoneName")?.value;
  const { timeZone } = format.resolvedOptions();
  return short === timeZone ? timeZone : `${timeZone} (${short})`;
}

/** "14:05" of today, "Fri 20 Nov 14:05" of this year, "20 Nov 2025" of another one. */
export function dateText(moment: string, now: Date = new Date()): string {
  const day = new Date(moment);
  const time = { hour: "2-digit", minute: "2-digit", hour12: false } as const;
  const date = { day: "numeric", month: "short" } as const;
  const isToday = midnight(day) === midnight(now);
  const isThisYear = day.getFullYear() === now.getFullYear();
  const parts = isToday
    ? time
    : isThisYear
      ? { weekday: "short" as const, ...date, ...time }
      : { ...date, year: "numeric" as const };
  return new Intl.DateTimeFormat("en-GB", parts).format(day).replaceAll(",", "");
}

/** The day a moment belongs to, as a heading: "Today", "Yesterday" or "Fri 20 Nov 2026". */
export function dayText(moment: string, now: Date = new Date()): string {
  const day = new Date(moment);
  const apart = Math.round((midnight(now) - midnight(day)) / 86_400_000);
  if (apart === 0) return "Today";
  if (apart === 1) return "Yesterday";
  return new Intl.DateTimeFormat("en-GB", {
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
  }).format(day);
}

/** A name with its invisible letters shown as their numbers: such letters can make one name look like another. */
export function nameText(name: string): string {
  return name.replace(
    INVISIBLE,
    (letter) => `⟨U+${letter.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

export function durationText(seconds: number): string {
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function midnight(day: Date): number {
  return new Date(day.getFullYear(), day.getMonth(), day.getDate()).getTime();
}

/** "person:1f0c ada" as "ada", "key:9a2e etl" as "etl (key)"; who has no name keeps the id. */
export function principalName(principal: string): string {
  const found = /^(person|key):\S+ (.+)$/.exec(principal);
  if (!found) return principal;
  return found[1] === "key" ? `${found[2]} (key)` : (found[2] ?? principal);
}
