import { expect, test } from "vitest";
import {
  agoText,
  bytesText,
  countText,
  dateText,
  dayText,
  durationText,
  exactText,
  nameText,
  principalName,
} from "./formats";

test("counts are grouped, beyond 2^53 as well", () => {
  expect(countText(1234567)).toBe("1,234,567");
  expect(countText("9007199254740993")).toBe("9,007,199,254,740,993");
});

test("bytes are told in binary units", () => {
  expect([0, 1023, 1024, 10 * 1024, 5 * 1024 ** 3].map(bytesText)).toEqual([
    "0 B",
    "1023 B",
    "1.0 KiB",
    "10 KiB",
    "5.0 GiB",
  ]);
});

test("moments are told relative to now, on either side of it", () => {
  const now = Date.parse("2026-11-20T12:00:00Z");
  expect(agoText("2026-11-20T11:59:58Z", now)).toBe("now");
  expect(agoText("2026-11-20T11:57:00Z", now)).toBe("3 min ago");
  expect(agoText("2026-11-19T12:00:00Z", now)).toBe("24 h ago");
  expect(agoText("2026-11-20T14:00:00Z", now)).toBe("in 2 h");
  expect(agoText("2026-11-20T12:00:25Z", now)).toBe("now");
});

test("an exact moment is told in the zone that is asked for", () => {
  expect(exactText("2026-11-20T14:05:09Z", "UTC")).toBe("20 Nov 2026, 14:05:09 UTC");
});

test("days have names as far as yesterday", () => {
  const now = new Date(2026, 10, 20, 9);
  expect(dayText(new Date(2026, 10, 20, 1).toISOString(), now)).toBe("Today");
  expect(dayText(new Date(2026, 10, 19, 23).toISOString(), now)).toBe("Yesterday");
  expect(dayText(new Date(2026, 10, 16, 23).toISOString(), now)).toContain("Mon");
});

test("durations are told with at most two units", () => {
  expect([0.42, 12, 75, 3700].map(durationText)).toEqual(["0.4 s", "12 s", "1 min 15 s", "1 h 1 min"]);
});

test("invisible letters of a name are shown as their numbers", () => {
  expect(nameText("a\u202Egnp.exe")).toBe("a⟨U+202E⟩gnp.exe");
  expect(nameText("a\u200Bb  c")).toBe("a⟨U+200B⟩b ⟨U+0020⟩c");
  expect(nameText("Ä ordinary name.csv")).toBe("Ä ordinary name.csv");
});

test("a date has the time of day, unless it is of another year", () => {
  const now = new Date(2026, 10, 20, 12, 0);
  expect(dateText(new Date(2026, 10, 20, 9, 5).toISOString(), now)).toBe("09:05");
  expect(dateText(new Date(2026, 10, 3, 9, 5).toISOString(), now)).toBe("Tue 3 Nov 09:05");
  expect(dateText(new Date(2025, 10, 3, 9, 5).toISOString(), now)).toBe("3 Nov 2025");
});

test("people and keys are told by name, and by id where there is none", () => {
  const told = ["person:1f0c ada lovelace", "key:9a2e etl", "key:9a2e ", "person:1f0c"].map(principalName);
  expect(told).toEqual(["ada lovelace", "etl (key)", "key:9a2e ", "person:1f0c"]);
});
