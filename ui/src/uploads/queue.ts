// Uploads under way, outside of any page: they go on while one looks at something else.
//
// What the service takes at once is one request with progress; larger files go by tus in pieces, and go on
// where they stopped after the network or the service was away. A file that is there is never replaced unasked.
import type { Place } from "@/api/place";
import { asProblem, PRECONDITION_FAILED, SIGNED_OUT } from "@/api/problem";
import { followed } from "@/parts/followed";
import { tell } from "@/parts/toasts";
import { setEnded } from "@/session/ended";
import { forgetInterrupted } from "./interrupted";
import { type RowsOrder, type Running, type Sendable, sendResumable, sendRows, sendWhole } from "./sending";

export type UploadState = "waiting" | "sending" | "exists" | "done" | "failed" | "cancelled";

export interface Upload extends Sendable {
  id: number;
  state: UploadState;
  sent: number;
  bytesPerSecond: number;
  problem: string;
}

const AT_ONCE_MAX = 4;

// Until the service has said so nothing is small enough.
let wholeBytesMax = 0;
const uploads = followed<readonly Upload[]>([]);
let lastId = 0;
const running = new Map<number, Running>();
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
  return one.state === "waiting" || one.state === "sending";
}

/** Those that the service has not taken, and that nobody gave up. */
export function unsentUploads(): readonly Upload[] {
  return uploads.get().filter((one) => one.state !== "done" && one.state !== "cancelled");
}

function isOfPlace(one: { place: Place }, place: Place): boolean {
  return one.place.tenant === place.tenant && one.place.environment === place.environment;
}

export function addUploads(place: Place, files: readonly { path: string; file: File }[]): void {
  add(files.map(({ path, file }) => ({ place, path, file, replaces: false })));
}

/** Sends a file of rows in pieces, and then starts its import into the stream. */
export function addImport(place: Place, rows: RowsOrder, file: File): void {
  add([{ place, path: file.name, file, replaces: false, rows }]);
}

function add(files: readonly Sendable[]): void {
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
  change(id, { state: "cancelled" });
  startNext();
}

/** Stops all of a tenant that wait or are sent. */
export function cancelAll(place: Place): void {
  const those = uploads.get().filter((one) => isOfPlace(one, place));
  // Those that wait first, so that none of them begins in the place of one that was stopped.
  for (const state of ["waiting", "sending"])
    for (const one of those) if (one.state === state) cancelUpload(one.id);
}

/** Begins a failed or cancelled upload again; a resumable one goes on where it stopped. */
export function retryUpload(id: number): void {
  change(id, { state: "waiting", problem: "" });
  startNext();
}

export type Answer = "replace" | "keep both" | "skip";

/** The answer to "there is such a file": a new version of it, another name beside it, or neither. */
export function settleUpload(id: number, answer: Answer): void {
  const upload = uploads.get().find((one) => one.id === id);
  if (!upload) return;
  if (answer === "skip") change(id, { state: "cancelled" });
  else if (answer === "replace") change(id, { state: "waiting", replaces: true });
  else change(id, { state: "waiting", path: besides(upload.path) });
  startNext();
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
    await sending.done;
    change(upload.id, { state: "done", sent: upload.file.size });
    onLanded(upload.place);
  } catch (error) {
    const problem = asProblem(error);
    if (problem.status === SIGNED_OUT) setEnded(true);
    const isThere = problem.status === PRECONDITION_FAILED;
    const isStopped = uploads.get().find((one) => one.id === upload.id)?.state === "cancelled";
    if (!isStopped) change(upload.id, { state: isThere ? "exists" : "failed", problem: problem.title });
  } finally {
    running.delete(upload.id);
    startNext();
  }
}

function sendingOf(upload: Upload, onProgress: (sent: number) => void): Running {
  if (upload.rows) {
    const sending = sendRows(upload, upload.rows, onProgress);
    const done = sending.done.then((job) => tell(`The import of ${upload.path} is job ${job.job_id}.`));
    return { done, stop: sending.stop };
  }
  return (goesInPieces(upload.file) ? sendResumable : sendWhole)(upload, onProgress);
}

function change(id: number, changes: Partial<Upload>): void {
  uploads.set(uploads.get().map((one) => (one.id === id ? { ...one, ...changes } : one)));
}
