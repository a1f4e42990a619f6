import { expect, test } from "vitest";
import type { Job } from "@/api/types";
import { changesOf, otherEffectsOf, reasonOf, scriptText, secondsOf } from "./job-facts";

function job(changes: Partial<Job>): Job {
  return {
    script: "etl.py",
    import_stream: null,
    replays: [],
    started: null,
    finished: null,
    outcome: null,
    ...changes,
  } as Job;
}

test("rows of all streams are added up; a job that changed none has no counts", () => {
  const streams = {
    Account: { inserted: 1, updated: 2, deleted: 0 },
    Lead: { inserted: 0, updated: 0, deleted: 4 },
    Same: { inserted: 0, updated: 0, deleted: 0 },
  };
  expect(changesOf(job({ outcome: { receipt: { streams } } }))).toEqual({
    inserted: 1,
    updated: 2,
    deleted: 4,
  });
  expect(changesOf(job({ outcome: { receipt: { streams: { Same: streams.Same } } } }))).toBeUndefined();
});

test("files that a job wrote or deleted are effects of it, also where no row changed", () => {
  const receipt = { streams: {}, files_written: ["config.json"], files_deleted: ["old.json"] };
  expect(otherEffectsOf(job({ outcome: { receipt } }))).toEqual({
    columns: [],
    files: ["config.json (written)", "old.json (deleted)"],
  });
});

test("a dry run is named as one, with the columns and files that it would change", () => {
  const stream = {
    columns_added: { Note: "string" },
    columns_dropped: { Old: "long" },
    columns_retyped: { Total: ["long", "double"] },
  };
  const dry_run = { streams: { Account: stream }, files: { "a.json": { fate: "added" } } };
  expect(scriptText(job({ dry_run: true }))).toBe("dry run of etl.py");
  expect(otherEffectsOf(job({ outcome: { dry_run } }))).toEqual({
    columns: ["+ Account.Note (string)", "- Account.Old", "Account.Total: long → double"],
    files: ["a.json (added)"],
  });
  expect(otherEffectsOf(job({}))).toEqual({ columns: [], files: [] });
});

test("a failure's reason is what the script raised, else the problem; what did not fail has none", () => {
  const script = { code: "SCRIPT_FAILED", problem: "It failed.", cause: "ValueError: no account\nin line 3" };
  const spark = { code: "ENGINE_UNAVAILABLE", problem: "Spark did not start.", cause: "WARN Utils: a log" };
  expect(reasonOf(job({ status: "failed", outcome: { error: script } }))).toBe("ValueError: no account");
  expect(reasonOf(job({ status: "dead", outcome: { error: spark } }))).toBe("Spark did not start.");
  expect(reasonOf(job({ status: "queued", outcome: { error: script } }))).toBe("");
  expect(reasonOf(job({ status: "failed" }))).toBe("");
});

test("an import is named by its stream, a replay by its jobs, and an ended job took seconds", () => {
  expect(scriptText(job({ import_stream: "Account" }))).toBe("import Account");
  expect(scriptText(job({ replays: ["a", "b"] }))).toBe("replay a, b with etl.py");
  expect(secondsOf(job({ started: "2026-11-02T04:00:00Z", finished: "2026-11-02T04:00:07Z" }))).toBe(7);
});
