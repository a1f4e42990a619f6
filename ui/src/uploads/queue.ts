// Uploads under way, outside of any page: they go on while one looks at something else.
//
// What the service takes at once is one request with progress; larger files go by tus in pieces, and go on
// where they stopped after the network or the service was away. A file that is there is never replaced unasked.
import { writeBatch } from "@/api/changes";
import type { Place } from "@/api/place";
import { asProblem, PRECONDITION_FAILED, SIGNED_OUT } from "@/api/problem";
import { followed } from "@/parts/followed";
import { tell } from "@/parts/toasts";
import { setEnded } from "@/session/ended";
import { forgetInterrupted } from "./interrupted";
import {
  type RowsOrder,
  type Running,
  type Sendable,
  type SentUpload,
  sendResumable,
  sendRows,
  sendWaiting,
  sendWhole,
} from "./sending";

/** "sent": its bytes wait at the service for the others of its batch; "saving": the batch is being written. */
export type UploadState =
  | "waiting"
  | "sending"
  | "sent"
  | "saving"
  | "exists"
  | "done"
  | "failed"
  | "cancelled";

export interface Upload extends Sendable {
  id: number;
  state: UploadState;
  sent: number;
  bytesPerSecond: number;
  problem: string;
  /** Files that were chosen together: they become one version. */
  batch?: number | undefined;
}

const BATCH_MAX = 1000;
const NOT_FOUND = 404;
const AT_ONCE_MAX = 4;

// Until the service has said so nothing is small enough.
let wholeBytesMax = 0;
const uploads = followed<readonly Upload[]>([]);
let lastId = 0;
const running = new Map<number, Running<unknown>>();
/** What waits at the service, by upload; and the key of each batch's next request. */
const sentUploads = new Map<number, SentUpload & { stop: () => void }>();
const batchKeys = new Map<number, string>();
let onLanded: (place: Place) => void = () => {};

/** How many bytes the service takes in one request; files above go in pieces. */
export function setWholeBytesMax(bytes: number): void {
  wholeBytesMax = bytes;
}

export function goesInPieces(file: File): boolean {
  return file.size > wholeBytesMax;
}

/** Calls `landed` when files of a tenant have arrived. */
export function whenLanded(landed: (place: Place) => void): void {
  onLanded = landed;
}

export const useAllUploads = uploads.useValue;

export function useUploads(place: Place): readonly Upload[] {
  return useAllUploads().filter((one) => isOfPlace(one, place));
}

export function isUnderWay(one: Upload): boolean {
  return ["waiting", "sending", "sent", "saving"].includes(one.state);
}

/** Those that the service has not taken, and that nobody gave up. */
export function unsentUploads(): readonly Upload[] {
  return uploads.get().filter((one) => one.state !== "done" && one.state !== "cancelled");
}

function isOfPlace(one: { place: Place }, place: Place): boolean {
  return one.place.tenant === place.tenant && one.place.environment === place.environment;
}

export function addUploads(place: Place, files: readonly { path: string; file: File }[]): void {
  const batch = files.length > 1 ? lastId + 1 : undefined;
  add(files.map(({ path, file }) => ({ place, path, file, replaces: false, batch })));
}

/** Sends a file of rows in pieces, and then starts its import into the stream. */
export function addImport(place: Place, rows: RowsOrder, file: File): void {
  add([{ place, path: file.name, file, replaces: false, rows }]);
}

function add(files: readonly (Sendable & { batch?: number | undefined })[]): void {
  const added = files.map((one): Upload => {
    lastId += 1;
    return { ...one, id: lastId, state: "waiting", sent: 0, bytesPerSecond: 0, problem: "" };
  });
  forgetInterrupted((gone) => added.some((one) => isOfPlace(gone, one.place) && gone.path === one.path));
  uploads.set([...uploads.get(), ...added]);
  startNext();
}

export function cancelUpload(id: number): void {
  running.get(id)?.stop();
  running.delete(id);
  sentUploads.get(id)?.stop();
  sentUploads.delete(id);
  change(id, { state: "cancelled" });
  startNext();
  writeWhenReady(id);
}

/** Stops all of a tenant that wait or are sent. */
export function cancelAll(place: Place): void {
  const those = uploads.get().filter((one) => isOfPlace(one, place));
  // Those that wait first, so that none of them begins in the place of one that was stopped.
  for (const state of ["waiting", "sending", "sent"])
    for (const one of those) if (one.state === state) cancelUpload(one.id);
}

/** Begins a failed or cancelled upload again; a resumable one goes on where it stopped. */
export function retryUpload(id: number): void {
  change(id, { state: readyState(id), problem: "" });
  startNext();
  writeWhenReady(id);
}

export type Answer = "replace" | "keep both" | "skip";

/** The answer to "there is such a file": a new version of it, another name beside it, or neither. */
export function settleUpload(id: number, answer: Answer): void {
  const upload = uploads.get().find((one) => one.id === id);
  if (!upload) return;
  if (answer === "skip") cancelUpload(id);
  else if (answer === "replace") change(id, { state: readyState(id), replaces: true });
  else change(id, { state: readyState(id), path: besides(upload.path) });
  startNext();
  writeWhenReady(id);
}

export function forgetFinished(place: Place): void {
  const isOver = (one: Upload) => one.state === "done" || one.state === "cancelled";
  uploads.set(uploads.get().filter((one) => !isOfPlace(one, place) || !isOver(one)));
}

/** "a/report.csv" beside itself: "a/report (2).csv", "a/report (3).csv" ... */
export function besides(path: string): string {
  const slash = path.lastIndexOf("/") + 1;
  const dot = path.lastIndexOf(".");
  const end = dot > slash ? dot : path.length;
  const numbered = /^(.*) \((\d+)\)$/.exec(path.slice(0, end));
  const [stem, number] = numbered ? [numbered[1], Number(numbered[2]) + 1] : [path.slice(0, end), 2];
  return `${stem} (${number})${path.slice(end)}`;
}

function startNext(): void {
  for (const upload of uploads.get()) {
    if (running.size >= AT_ONCE_MAX) return;
    if (upload.state === "waiting" && !running.has(upload.id)) void start(upload);
  }
}

async function start(upload: Upload): Promise<void> {
  change(upload.id, { state: "sending" });
  const begun = performance.now();
  const before = upload.sent;
  function onProgress(sent: number) {
    const seconds = (performance.now() - begun) / 1000;
    change(upload.id, { sent, bytesPerSecond: seconds > 0 ? (sent - before) / seconds : 0 });
  }
  const sending = sendingOf(upload, onProgress);
  running.set(upload.id, sending);
  try {
    const sent = await sending.done;
    if (upload.batch !== undefined) {
      sentUploads.set(upload.id, { ...(sent as SentUpload), stop: sending.stop });
      change(upload.id, { state: "sent", sent: upload.file.size });
    } else {
      change(upload.id, { state: "done", sent: upload.file.size });
      onLanded(upload.place);
    }
  } catch (error) {
    const problem = asProblem(error);
    if (problem.status === SIGNED_OUT) setEnded(true);
    const isThere = problem.status === PRECONDITION_FAILED;
    const isStopped = uploads.get().find((one) => one.id === upload.id)?.state === "cancelled";
    if (!isStopped) change(upload.id, { state: isThere ? "exists" : "failed", problem: problem.title });
  } finally {
    running.delete(upload.id);
    startNext();
    writeWhenReady(upload.id);
  }
}

/** Where a settled upload goes on: its bytes need not be sent a second time. */
function readyState(id: number): UploadState {
  return sentUploads.has(id) ? "sent" : "waiting";
}

/** Writes an upload's batch once nothing of it is under way and no question of it is open. */
function writeWhenReady(id: number): void {
  const batch = uploads.get().find((one) => one.id === id)?.batch;
  if (batch === undefined) return;
  // After all that changes with this one: an answer for all of them is one version.
  queueMicrotask(() => {
    const those = uploads.get().filter((one) => one.batch === batch);
    const isBusy = (one: Upload) => ["waiting", "sending", "saving", "exists"].includes(one.state);
    if (!those.some(isBusy)) void writeSent(batch);
  });
}

async function writeSent(batch: number): Promise<void> {
  const ready = uploads.get().filter((one) => one.batch === batch && one.state === "sent");
  const those = ready.slice(0, BATCH_MAX);
  const [first] = those;
  if (!first) return;
  const ids = new Set(those.map((one) => one.id));
  changeAll(ids, { state: "saving" });
  const key = batchKeys.get(batch) ?? `batch-${sentUploads.get(first.id)?.id}-${Date.now()}`;
  batchKeys.set(batch, key);
  try {
    const files = those.map(({ id, path, replaces }) => ({
      upload: sentUploads.get(id)?.id ?? "",
      path,
      if_none_match: replaces ? null : ("*" as const),
    }));
    await writeBatch(first.place, files, key);
    batchKeys.delete(batch);
    for (const id of ids) void sentUploads.get(id)?.forget();
    forgetSent(ids);
    changeAll(ids, { state: "done" });
    onLanded(first.place);
  } catch (error) {
    const problem = asProblem(error);
    // An answer that never came may have had its effect: then the same request comes again.
    if (problem.status !== 0) batchKeys.delete(batch);
    if (problem.status === SIGNED_OUT) setEnded(true);
    if (problem.status === NOT_FOUND) forgetSent(ids);
    const there = new Set(those.filter((one) => problem.paths.includes(one.path)).map((one) => one.id));
    if (there.size > 0) changeAll(ids, { state: "sent" });
    changeAll(there.size > 0 ? there : ids, {
      state: there.size > 0 ? "exists" : "failed",
      problem: problem.title,
    });
    if (there.size === 0) return;
  }
  // Those whose names were free, or that were too many for one request.
  await writeSent(batch);
}

function forgetSent(ids: ReadonlySet<number>): void {
  for (const id of ids) sentUploads.delete(id);
}

function sendingOf(upload: Upload, onProgress: (sent: number) => void): Running<unknown> {
  if (upload.rows) {
    const sending = sendRows(upload, upload.rows, onProgress);
    const done = sending.done.then((job) => tell(`The import of ${upload.path} is job ${job.job_id}.`));
    return { done, stop: sending.stop };
  }
  if (upload.batch !== undefined) return sendWaiting(upload, onProgress, goesInPieces(upload.file));
  return (goesInPieces(upload.file) ? sendResumable : sendWhole)(upload, onProgress);
}

function changeAll(ids: ReadonlySet<number>, changes: Partial<Upload>): void {
  uploads.set(uploads.get().map((one) => (ids.has(one.id) ? { ...one, ...changes } : one)));
}

function change(id: number, changes: Partial<Upload>): void {
  uploads.set(uploads.get().map((one) => (one.id === id ? { ...one, ...changes } : one)));
}
