// The time of which jobs are listed, from a period's name (pure).
import type { Period } from "@/navigation/search";

const DAY = 24;
const EVENING = 18;
const MORNING = 8;

export const PERIOD_NAMES: Record<Period, string> = {
  today: "Today",
  night: "Last night (18:00 to 08:00)",
  week: "Last 7 days",
};

/** From when to when, by the reader's clock. */
export function periodOf(period: Period | undefined, now: Date): { since?: string; until?: string } {
  const at = (hours: number) =>
    new Date(now.getFullYear(), now.getMonth(), now.getDate(), hours).toISOString();
  if (period === "today") return { since: at(0) };
  if (period === "week") return { since: at(-7 * DAY) };
  return period === "night" ? { since: at(EVENING - DAY), until: at(MORNING) } : {};
}
