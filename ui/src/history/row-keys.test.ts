import { expect, test } from "vitest";
import { keyOfRow } from "./row-keys";

test("a key is taken from the side on which the row is there", () => {
  const gone = {
    fate: "delete" as const,
    before: { Id: "9007199254740993", City: "Bern" },
    after: {},
    changed: [],
  };
  expect(keyOfRow(gone, ["Id"])).toEqual({ Id: "9007199254740993" });
  const fresh = { fate: "insert" as const, before: {}, after: { A: 1, B: null, C: 2 }, changed: [] };
  expect(keyOfRow(fresh, ["A", "B"])).toEqual({ A: 1, B: null });
});
