import { expect, test } from "vitest";
import { steps } from "./steps";

test("from now one goes back to what was before the newest version", () => {
  expect(steps([9, 5, 2], undefined)).toEqual({ current: 9, earlier: 5, later: undefined });
});

test("from a version between two changes one goes to the next that changed the stream", () => {
  expect(steps([9, 5, 2], 7)).toEqual({ current: 5, earlier: 2, later: "now" });
  expect(steps([9, 5, 2], 2)).toEqual({ current: 2, earlier: undefined, later: 5 });
});

test("before the first version there is only later", () => {
  expect(steps([9, 5, 2], 1)).toEqual({ current: undefined, earlier: undefined, later: 2 });
});
