import { expect, test } from "vitest";
import type { JobGroup } from "@/api/types";
import { countsText, failedOf, openOf, tenantsText } from "./groups";

test("a group is told by the counts of its jobs, failed ones last", () => {
  const counts = { failed: 2, running: 4, succeeded: 1214, timed_out: 1 };
  const group = { jobs: 1221, counts } as unknown as JobGroup;
  expect(countsText(group)).toBe("1,214 succeeded, 4 running, 2 failed, 1 timed out");
  expect([tenantsText(group), failedOf(group), openOf(group)]).toEqual(["1,221 tenants", 3, 4]);
});
