import { expect, test } from "vitest";
import { keyOfRow, keyText } from "./row-keys";

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

test("a key's text is the value, or an array where it could be read as something else", () => {
  expect(keyText({ Id: "007", City: "Bern" }, ["Id"])).toBe("007");
  expect(keyText({ Id: "a/b" }, ["Id"])).toBe("a/b");
  for (const odd of ["[x", "..", ".", ""]) expect(keyText({ Id: odd }, ["Id"])).toBe(JSON.stringify([odd]));
  expect(keyText({ Id: null }, ["Id"])).toBe("[null]");
  expect(keyText({ Id: 7, Day: "2026-11-01" }, ["Day", "Id"])).toBe('["2026-11-01",7]');
});
