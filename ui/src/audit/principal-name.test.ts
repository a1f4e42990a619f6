import { expect, test } from "vitest";
import { principalName } from "./principal-name";

test("people and keys are told by name, and by id where there is none", () => {
  const told = ["person:1f0c ada lovelace", "key:9a2e etl", "key:9a2e ", "person:1f0c"].map(principalName);
  expect(told).toEqual(["ada lovelace", "etl (key)", "key:9a2e ", "person:1f0c"]);
});
