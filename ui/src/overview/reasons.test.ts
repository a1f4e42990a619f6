import { expect, test } from "vitest";
import type { FailedJob } from "@/api/types";
import { reasonsOf } from "./reasons";

test("failed jobs are told by reason, most first, whatever numbers and names differ in it", () => {
  const job = (tenant: string, error: string): FailedJob => ({
    tenant,
    job_id: `job-${tenant}`,
    status: "failed",
    finished: "2026-11-20T14:05:00Z",
    error,
    error_code: "SCRIPT_FAILED",
    is_repeatable: true,
  });
  const jobs = [
    job("a", "KeyError: 'Amount'"),
    job("b", "timeout after 30 s"),
    job("c", "timeout after 31 s"),
  ];

  expect(reasonsOf(jobs).map(({ text, jobs: those }) => [text, those.map((one) => one.tenant)])).toEqual([
    ["timeout after 30 s", ["b", "c"]],
    ["KeyError: 'Amount'", ["a"]],
  ]);
});
