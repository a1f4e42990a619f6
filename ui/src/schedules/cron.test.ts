import { expect, test } from "vitest";
import { cronText } from "./cron";

test("usual cron expressions are told in words, others as they are", () => {
  const told = {
    "0 6 * * *": "every day at 06:00",
    "0 6 * * 1-5": "Monday to Friday at 06:00",
    "30 2 * * MON,thu": "Monday, Thursday at 02:30",
    "5 6,18 * * *": "every day at 06:05, 18:05",
    "*/15 * * * *": "every 15 minutes",
    "0 * * * *": "every hour at :00",
    "0 */4 * * 1-5": "every 4 hours at :00, Monday to Friday",
    "0 0 1 * *": "on day 1 of each month at 00:00",
    "@daily": "every day at 00:00",
    "0 6 1 1 *": "0 6 1 1 *",
    "0 6 * * 9": "0 6 * * 9",
    "0 6 1 * 1": "0 6 1 * 1",
    "at noon": "at noon",
  };
  expect(Object.fromEntries(Object.keys(told).map((cron) => [cron, cronText(cron)]))).toEqual(told);
});
