// A cron expression in words, where it is one of the usual ones (pure).

const NICKNAMES: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const NAMES = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/** "every day at 06:00", "Monday to Friday at 06:00"; the expression itself where it is another one. */
export function cronText(cron: string): string {
  const fields = (NICKNAMES[cron.trim()] ?? cron).trim().split(/\s+/);
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  const times = timesText(minute, hour);
  const days = daysText(day, weekday);
  if (fields.length !== 5 || month !== "*" || times === undefined || days === undefined) return cron;
  if (times.startsWith("every")) return days === "every day" ? times : `${times}, ${days}`;
  return `${days} ${times}`;
}

function timesText(minute: string, hour: string): string | undefined {
  const step = /^\*\/(\d+)$/;
  if (hour === "*") {
    if (minute === "*") return "every minute";
    const [, minutes] = step.exec(minute) ?? [];
    if (minutes) return `every ${minutes} minutes`;
    return /^\d+$/.test(minute) ? `every hour at :${minute.padStart(2, "0")}` : undefined;
  }
  if (!/^\d+$/.test(minute)) return undefined;
  const [, hours] = step.exec(hour) ?? [];
  if (hours) return `every ${hours} hours at :${minute.padStart(2, "0")}`;
  if (!/^\d+(,\d+)*$/.test(hour)) return undefined;
  const at = (one: string) => `${one.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  return `at ${hour.split(",").map(at).join(", ")}`;
}

function daysText(day: string, weekday: string): string | undefined {
  if (day === "*" && weekday === "*") return "every day";
  if (weekday === "*") return /^\d+$/.test(day) ? `on day ${day} of each month` : undefined;
  const number = (one: string) => {
    const named = NAMES.indexOf(one.toUpperCase());
    return DAYS[named >= 0 ? named : Number(one)];
  };
  const parts = weekday.split(",").map((part) => part.split("-").map(number));
  if (day !== "*" || parts.flat().some((one) => one === undefined)) return undefined;
  return parts.map((ends) => ends.join(" to ")).join(", ");
}
