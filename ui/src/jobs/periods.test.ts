import { expect, test } from "vitest";
import { periodOf } from "./periods";

test("a period is from a moment to another one by the reader's clock", () => {
  const now = new Date(2026, 10, 20, 9, 30);
  const at = (day: number, hour: number) => new Date(2026, 10, day, hour).toISOString();
  expect(periodOf("today", now)).toEqual({ since: at(20, 0) });
  expect(periodOf("night", now)).toEqual({ since: at(19, 18), until: at(20, 8) });
  expect(periodOf("week", now)).toEqual({ since: at(13, 0) });
  expect(periodOf(undefined, now)).toEqual({});
});
