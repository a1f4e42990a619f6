// Uploads under way, outside of any page: they go on while one looks at something else.
//
// Names are checked first, then each file is sent as a staged blob, and those that were chosen together become one
// version. A file that is there is never replaced unasked.
import { type BoundImport, importBlob, removeBlob, takenPaths, writeBatch } from "@/api/changes";
import { type Place, tenantAddress, withQuery } from "@/api/client";
import {
  asProblem,
  MISSING,
  PRECONDITION_FAILED,
  Problem,
  problemFrom,
  SIGNED_OUT,
  unreachable,
} from "@/api/problem";
import { followed } from "@/parts/page";
import { tell } from "@/parts/toasts";
import { setEnded } from "@/session/session";

/** "sent": its bytes wait at the service for the others of its batch; "saving": the batch is being written. */
type UploadState =
  | "checking"
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
  problem: string;
  /** The cause of the problem, and what to do about it. */
  advice: string;
  /** Files that were chosen together: they become one version. */
  batch: number;
  /** The entity tag of the file that is there, as it was asked about: only that one is replaced. */
  there: string | null;
}

const BATCH_MAX = 1000;
const STAR = "*" as const;
const AT_ONCE_MAX = 4;

// Until the service has said so nothing is small enough.
let wholeBytesMax = 0;
const uploads = followed<readonly Upload[]>([]);
let lastId = 0;
const running = new Map<number, Running<unknown>>();
/** The blobs that wait at the service, by upload; and the key of each batch's next request. */
const blobs = new Map<number, string>();
const batchKeys = new Map<number, string>();
let onLanded: (place: Place) => void = () => {};

/** How many bytes the service takes in one request; larger files are staged. */
export function setWholeBytesMax(bytes: number): void {
  wholeBytesMax = bytes;
}

export function isLarge(file: File): boolean {
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
  return ["checking", "waiting", "sending", "sent", "saving"].includes(one.state);
}

/** Those that the service has not taken, and that nobody gave up. */
export function unsentUploads(): readonly Upload[] {
  return uploads.get().filter((one) => one.state !== "done" && one.state !== "cancelled");
}

function isOfPlace(one: { place: Place }, place: Place): boolean {
  return one.place.tenant === place.tenant && one.place.environment === place.environment;
}

export function addUploads(place: Place, files: readonly { path: string; file: File }[], message = ""): void {
  // What is counted is what was chosen now, and not all of the session.
  forgetFinished(place);
  const batch = lastId + 1;
  const added = add(files.map(({ path, file }) => ({ place, path, file, replaces: false, batch, message })));
  for (let start = 0; start < added.length; start += BATCH_MAX)
    void check(place, added.slice(start, start + BATCH_MAX));
}

/** Asks about names that are taken before any bytes are sent; what cannot be checked is checked again when saved. */
async function check(place: Place, those: readonly Upload[]): Promise<void> {
  const paths = those.map(({ path }) => path);
  const refusal = await takenPaths(place, paths).catch(() => undefined);
  const there = new Map(refusal?.paths.map((path, at) => [path, refusal.etags[at] ?? null]));
  for (const one of uploads.get().filter((each) => those.some(({ id }) => id === each.id))) {
    if (one.state !== "checking") continue;
    change(one.id, { state: there.has(one.path) ? "exists" : "waiting", there: there.get(one.path) ?? null });
  }
  startNext();
}

/** Sends a file of rows, and then starts its import into the stream. */
export function addImport(place: Place, rows: RowsOrder, file: File): void {
  add([{ place, path: file.name, file, replaces: false, message: rows.message, rows, batch: lastId + 1 }]);
  startNext();
}

function add(files: readonly (Sendable & { batch: number })[]): readonly Upload[] {
  const added = files.map((one): Upload => {
    lastId += 1;
    const state = one.rows ? "waiting" : "checking";
    return { ...one, id: lastId, state, sent: 0, problem: "", advice: "", there: null };
  });
  forgetInterrupted((gone) => added.some((one) => isOfPlace(gone, one.place) && gone.path === one.path));
  uploads.set([...uploads.get(), ...added]);
  return added;
}

export function cancelUpload(id: number): void {
  running.get(id)?.stop();
  running.delete(id);
  const upload = uploads.get().find((one) => one.id === id);
  const blob = blobs.get(id);
  blobs.delete(id);
  // One that cannot be removed now goes by itself when its time is over.
  if (upload && blob) removeBlob(upload.place, blob).catch(() => {});
  change(id, { state: "cancelled" });
  startNext();
  writeWhenReady(id);
}

/** Stops all of a tenant that wait or are sent. */
export function cancelAll(place: Place): void {
  const those = uploads.get().filter((one) => isOfPlace(one, place));
  // Those that wait first, so that none of them begins in the place of one that was stopped.
  for (const state of ["checking", "waiting", "sending", "sent"])
    for (const one of those) if (one.state === state) cancelUpload(one.id);
}

/** Begins a failed or cancelled upload again; bytes that the service has are not sent again. */
export function retryUpload(id: number): void {
  change(id, { state: readyState(id), problem: "" });
  startNext();
  writeWhenReady(id);
}

/** Gives a failed upload another path and begins it again. */
export function renameUpload(id: number, path: string): void {
  change(id, { path });
  retryUpload(id);
}

export type Answer = "replace" | "keep both" | "skip";

/** The answer to "there is such a file": a new version of it, another name beside it, or neither. */
export function settleUpload(id: number, answer: Answer): void {
  const upload = uploads.get().find((one) => one.id === id);
  if (!upload) return;
  if (answer === "skip") cancelUpload(id);
  else if (answer === "replace") change(id, { state: readyState(id), replaces: true });
  else change(id, { state: readyState(id), path: besides(upload.path), there: null });
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
  const onProgress = (sent: number) => change(upload.id, { sent });
  const known = blobs.get(upload.id);
  const sending = known ? { done: Promise.resolve(known), stop: () => {} } : sendBlob(upload, onProgress);
  running.set(upload.id, sending);
  try {
    const blob = await sending.done;
    if (isCancelled(upload.id)) return void removeBlob(upload.place, blob).catch(() => {});
    blobs.set(upload.id, blob);
    if (upload.rows) {
      const job = await importBlob(upload.place, upload.rows.stream, blob, upload.rows);
      tell(`The import of ${upload.path} is job ${job.job_id}.`);
      blobs.delete(upload.id);
      change(upload.id, { state: "done", sent: upload.file.size });
      onLanded(upload.place);
    } else change(upload.id, { state: "sent", sent: upload.file.size });
  } catch (error) {
    const problem = asProblem(error);
    if (problem.status === SIGNED_OUT) setEnded(true);
    const isThere = problem.status === PRECONDITION_FAILED && !upload.rows;
    if (problem.status === MISSING) blobs.delete(upload.id);
    if (!isCancelled(upload.id))
      change(upload.id, { state: isThere ? "exists" : "failed", ...told(problem) });
  } finally {
    running.delete(upload.id);
    startNext();
    writeWhenReady(upload.id);
  }
}

/** Where a settled upload goes on: its bytes need not be sent a second time. */
function readyState(id: number): UploadState {
  const isRows = uploads.get().find((one) => one.id === id)?.rows !== undefined;
  return blobs.has(id) && !isRows ? "sent" : "waiting";
}

function isCancelled(id: number): boolean {
  return uploads.get().find((one) => one.id === id)?.state === "cancelled";
}

/** Writes an upload's batch once nothing of it is under way and no question of it is open. */
function writeWhenReady(id: number): void {
  const batch = uploads.get().find((one) => one.id === id)?.batch;
  if (batch === undefined) return;
  // After all that changes with this one: an answer for all of them is one version.
  queueMicrotask(() => {
    const those = uploads.get().filter((one) => one.batch === batch);
    const isBusy = (one: Upload) =>
      ["checking", "waiting", "sending", "saving", "exists"].includes(one.state);
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
  const key = batchKeys.get(batch) ?? `batch-${blobs.get(first.id)}-${Date.now()}`;
  batchKeys.set(batch, key);
  try {
    const files = those.map(({ id, path, replaces, there }) => {
      const condition = replaces ? there : null;
      return { blob: blobs.get(id) ?? "", path, if_match: condition, if_none_match: condition ? null : STAR };
    });
    await writeBatch(first.place, { files, message: first.message }, key);
    batchKeys.delete(batch);
    forgetBlobs(ids);
    changeAll(ids, { state: "done" });
    onLanded(first.place);
  } catch (error) {
    const problem = asProblem(error);
    // An answer that never came may have had its effect: then the same request comes again.
    if (problem.status !== 0) batchKeys.delete(batch);
    if (problem.status === SIGNED_OUT) setEnded(true);
    if (problem.status === MISSING) forgetBlobs(ids);
    if (problem.paths.length === 0) return changeAll(ids, { state: "failed", ...told(problem) });
    // What is there now is asked about, again where it was replaced meanwhile; the others go on.
    changeAll(ids, { state: "sent" });
    for (const [at, path] of problem.paths.entries())
      for (const { id } of those.filter((one) => one.path === path))
        change(id, { state: "exists", replaces: false, there: problem.etags[at] ?? null });
  }
  // Those whose names were free, or that were too many for one request.
  await writeSent(batch);
}

function told({ title, cause, remedy }: Problem): Pick<Upload, "problem" | "advice"> {
  return { problem: title, advice: [cause, remedy].filter(Boolean).join(" ") };
}

function forgetBlobs(ids: ReadonlySet<number>): void {
  for (const id of ids) blobs.delete(id);
}

function changeAll(ids: ReadonlySet<number>, changes: Partial<Upload>): void {
  uploads.set(uploads.get().map((one) => (ids.has(one.id) ? { ...one, ...changes } : one)));
}

function change(id: number, changes: Partial<Upload>): void {
  uploads.set(uploads.get().map((one) => (one.id === id ? { ...one, ...changes } : one)));
}

interface Running<Done = unknown> {
  done: Promise<Done>;
  stop: () => void;
}

interface Sendable {
  place: Place;
  path: string;
  file: File;
  replaces: boolean;
  /** Why, for the history. */
  message: string;
  /** The file is not a file of the tenant's but rows for a stream. */
  rows?: RowsOrder;
}

interface RowsOrder extends BoundImport {
  stream: string;
}

const RETRY_DELAYS_MS = [1000, 5000, 15000];
/** The network or the service is away for a moment: nothing, or what a proxy says then. */
const AWAY = new Set([0, 502, 503, 504]);

/** Sends the bytes; `done` is the blob's id. After an interruption they are sent again from the beginning. */
function sendBlob(upload: Sendable, onProgress: (sent: number) => void): Running<string> {
  let request: XMLHttpRequest | undefined;
  let isStopped = false;
  async function send(): Promise<string> {
    for (const delay of [...RETRY_DELAYS_MS, null]) {
      try {
        request = new XMLHttpRequest();
        return await sent(request, upload, onProgress);
      } catch (error) {
        if (isStopped || delay === null || !AWAY.has(asProblem(error).status)) throw error;
        onProgress(0);
        await new Promise((resolve) => setTimeout(resolve, delay));
        if (isStopped) throw error;
      }
    }
    throw unreachable();
  }
  return {
    done: send(),
    stop: () => {
      isStopped = true;
      request?.abort();
    },
  };
}

/** One request; `fetch` tells nothing of its progress, so it is the older way. */
function sent(
  request: XMLHttpRequest,
  { place, path, file, rows }: Sendable,
  onProgress: (sent: number) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    request.open("POST", withQuery(`${tenantAddress(place)}/blobs`, rows ? {} : { path }));
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onload = () => {
      if (request.status < 300) resolve((JSON.parse(request.responseText) as { id: string }).id);
      else
        reject(
          problemFrom(request.status, request.responseText, request.getResponseHeader("X-Request-Id") ?? ""),
        );
    };
    request.onerror = () => reject(unreachable());
    request.onabort = () => reject(new Problem(0, "CANCELLED", "Cancelled."));
    request.send(file);
  });
}

const KEY = "freezeframe.interrupted";

interface Interrupted {
  place: Place;
  path: string;
}

const interrupted = followed(read());

export const useInterrupted = interrupted.useValue;

/**
 * Uploads that the end of a page cut off: listed when it is there again, until they are sent anew or
 * dismissed. In the session's storage, for each browser tab its own: what another tab is sending was not
 * interrupted.
 */
export function forgetInterrupted(isGone: (one: Interrupted) => boolean): void {
  const known = interrupted.get();
  if (known.some(isGone)) set(known.filter((one) => !isGone(one)));
}

/** To be called at the end of a page, with what it had not sent. */
export function noteInterrupted(unsent: readonly Interrupted[]): void {
  if (unsent.length > 0) set([...interrupted.get(), ...unsent.map(({ place, path }) => ({ place, path }))]);
}

function set(next: readonly Interrupted[]): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(next));
  } catch {
    // Without room for it the list ends with the page.
  }
  interrupted.set(next);
}

function read(): readonly Interrupted[] {
  try {
    const kept: unknown = JSON.parse(globalThis.sessionStorage?.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isOne) : [];
  } catch {
    return [];
  }
}

function isOne(kept: Partial<Interrupted> | null): kept is Interrupted {
  return typeof kept?.path === "string" && typeof kept.place?.tenant === "string";
}
