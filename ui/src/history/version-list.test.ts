import { expect, test } from "vitest";
import type { TenantVersion } from "@/api/types";
import { withDays } from "./VersionList";

function version(number: number, isIdle: boolean): TenantVersion {
  return {
    version: number,
    is_idle: isIdle,
    tags: [],
    timestamp: "2020-11-05T12:00:00Z",
  } as unknown as TenantVersion;
}

const versions = [
  version(5, false),
  version(4, true),
  version(3, true),
  version(2, true),
  version(1, false),
  version(0, true),
];

test("versions that changed nothing are one entry", () => {
  const [, ...items] = withDays(versions, new Set());
  expect(
    items.map((item) =>
      Array.isArray(item) ? item.map((one) => one.version) : (item as TenantVersion).version,
    ),
  ).toEqual([5, [4, 3, 2], 1, 0]);
});

test("they are entries of their own when they are unfolded", () => {
  expect(withDays(versions, new Set([4, 3, 2]))).toHaveLength(versions.length + 1);
});
