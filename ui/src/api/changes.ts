// What the console changes through the service. Each call is one change in the tenant's history.
import {
  address,
  type Condition,
  change,
  fileAddress,
  get,
  type Place,
  send,
  streamAddress,
  tenantAddress,
  withQuery,
} from "./client";
import { type Decoded, decoded } from "./file-text";
import { asProblem, MISSING, PRECONDITION_FAILED, type Problem } from "./problem";
import type {
  FileEntry,
  FileHistory,
  Job,
  KeyWithSecret,
  NewJob,
  NewKey,
  Policy,
  Restoration,
  RestorationOrder,
  RetriedRows,
  Reversion,
  RowChange,
  RowChangeOrder,
  RowErasure,
  Who,
} from "./types";

export function signIn(credentials: { key: string } | { link: string }): Promise<Who> {
  return change("POST", address`/session`, "a session", { body: credentials, isUnkeyed: true });
}

export function signOut(): Promise<void> {
  return change("DELETE", address`/session`, "a session");
}

export function createTenant(environment: string, tenant: string): Promise<unknown> {
  return change("POST", address`/environments/${environment}/tenants`, "a new thing", { body: { tenant } });
}

/** A new tenant with the newest streams and files of another, and none of its past. */
export function cloneTenant(place: Place, tenant: string): Promise<unknown> {
  return change("POST", `${tenantAddress(place)}/clone`, "a new thing", { body: { tenant } });
}

/** All that is kept for a tenant goes for good, if it still is the version that was shown. */
export function deleteTenant(place: Place, condition: Condition): Promise<unknown> {
  return change("DELETE", tenantAddress(place), condition, { query: { confirm: place.tenant } });
}

export function createFolder(place: Place, path: string): Promise<unknown> {
  return change("POST", `${tenantAddress(place)}/folders`, "a new thing", { body: { path } });
}

interface BatchedFile {
  blob: string;
  path: string;
  if_match: string | null;
  if_none_match: "*" | null;
}

/** The refusal that names those of the paths that are taken; undefined where all of them are free. */
export function takenPaths(place: Place, paths: readonly string[]): Promise<Problem | undefined> {
  const files = paths.map((path) => ({ path, if_none_match: "*" }));
  const body = { files, only_check: true };
  return change("POST", `${tenantAddress(place)}/file-batches`, "in the body", {
    body,
    isUnkeyed: true,
  }).then(
    () => undefined,
    (error) => {
      if (asProblem(error).status === PRECONDITION_FAILED) return asProblem(error);
      throw error;
    },
  );
}

/** Gives cells of a row other values, as one version, if the tenant is still what was shown. */
export function changeRow(
  place: Place,
  stream: string,
  order: RowChangeOrder,
  etag: string,
): Promise<RowChange> {
  return change("POST", `${streamAddress(place, stream)}/row-changes`, { "If-Match": etag }, { body: order });
}

/** Rows that a target refused are sent again as they are: those of some keys (`keyText`), or all. */
export function retryRows(
  place: Place,
  stream: string,
  target: string,
  keys: readonly string[],
  condition: Condition,
): Promise<RetriedRows> {
  const name = encodeURIComponent(target);
  return change("POST", `${streamAddress(place, stream)}/deliveries/${name}/retries`, condition, {
    body: { keys },
  });
}

/** Gives up the bytes of a staged blob. */
export function removeBlob(place: Place, blob: string): Promise<unknown> {
  return change("DELETE", `${tenantAddress(place)}/blobs/${blob}`, "one's own");
}

/** Staged blobs become files in one version; the same order under one key is carried out once. */
export function writeBatch(
  place: Place,
  order: { files: readonly BatchedFile[]; message: string },
  key: string,
): Promise<unknown> {
  return change("POST", `${tenantAddress(place)}/file-batches`, "in the body", {
    body: order,
    headers: { "Idempotency-Key": key },
    isUnkeyed: true,
  });
}

/** Files, and folders with all below them, go in one version: all of them or none. */
export function deleteFiles(
  place: Place,
  order: { paths: readonly string[]; folders: readonly string[]; message: string },
  condition: Condition,
): Promise<{ tenant_version: number; paths: string[] }> {
  return change("POST", `${tenantAddress(place)}/file-deletions`, condition, { body: order });
}

export interface Move {
  path: string;
  target: string;
  message: string;
}

/** A file moves if it is still what was shown, by `fileTag`. */
export function moveFile(place: Place, move: Move, condition: Condition): Promise<FileEntry> {
  return change("POST", `${tenantAddress(place)}/file-moves`, condition, { body: move });
}

/** The entity tag of a file. */
export function fileTag({ version, sha256 }: Pick<FileEntry, "version" | "sha256">): string {
  return `"${version}-${sha256.slice(0, 32)}"`;
}

/** A folder moves with all below it, in one version. */
export function moveFolder(place: Place, move: Move, condition: Condition): Promise<{ path: string }> {
  return change("POST", `${tenantAddress(place)}/folder-moves`, condition, { body: move });
}

export function dropStream(
  place: Place,
  stream: string,
  message: string,
  condition: Condition,
): Promise<{ tenant_version: number }> {
  return change("DELETE", streamAddress(place, stream), condition, { query: { message } });
}

/** The condition that a stream, which may not be there yet, is what it is now, or at the version that was shown. */
export async function unchangedStream(place: Place, stream: string, shown?: number): Promise<Condition> {
  try {
    const etag = (await send("GET", streamAddress(place, stream))).headers.get("ETag") ?? "";
    return { "If-Match": shown === undefined || etag.startsWith(`"${shown}-`) ? etag : `"${shown}"` };
  } catch (error) {
    if (asProblem(error).status === MISSING) return { "If-None-Match": "*" };
    throw error;
  }
}

export type ErasureOrder = {
  keys: readonly Record<string, unknown>[] | null;
  where: string | null;
  dry_run?: boolean;
  message?: string;
};

/** Erases rows of a stream from every version and all bytes, or tells which ones it would erase. */
export function eraseRows(
  place: Place,
  stream: string,
  order: ErasureOrder,
  condition: Condition,
): Promise<RowErasure> {
  return change("POST", `${streamAddress(place, stream)}/erasures`, condition, { body: order });
}

export function restore(place: Place, order: RestorationOrder, condition: Condition): Promise<Restoration> {
  return change("POST", `${tenantAddress(place)}/restorations`, condition, { body: order });
}

/** A version, or the version of a job, of which all or these streams, files and rows are taken back. */
export type ReversionOrder = ({ version: number; since?: number } | { job_id: string }) & {
  only?: readonly string[];
  /** Of the one stream only these rows. */
  keys?: readonly RowChangeOrder["key"][];
  dry_run?: boolean;
  message?: string;
};
export type { Reversion };

/** Takes back what one version did, cell by cell; what was changed again since stays, and is named. */
export function revert(place: Place, order: ReversionOrder, condition: Condition): Promise<Reversion> {
  return change("POST", `${tenantAddress(place)}/reversions`, condition, { body: order });
}

/** Brings back what was deleted, unless somebody has made any of it anew: a `Problem` of status 412 says who. */
export function undoDeletion(place: Place, order: RestorationOrder): Promise<Restoration> {
  return restore(place, order, { "If-None-Match": "*" });
}

interface FileBytes {
  bytes: Uint8Array<ArrayBuffer>;
  etag: string;
}

/** A file's bytes; of a longer one than `bytesMax` its beginning. */
export async function readBytes(
  place: Place,
  path: string,
  version?: number,
  bytesMax?: number,
): Promise<FileBytes> {
  const headers: Record<string, string> = bytesMax === undefined ? {} : { Range: `bytes=0-${bytesMax - 1}` };
  const answer = await send("GET", fileAddress(place, path, version), { headers });
  return { bytes: new Uint8Array(await answer.arrayBuffer()), etag: answer.headers.get("ETag") ?? "" };
}

interface FileText extends Decoded {
  etag: string;
}

/** A file's text, or null where its bytes are none; of a longer one than `bytesMax` its first lines. */
export async function readFile(
  place: Place,
  path: string,
  version?: number,
  bytesMax?: number,
): Promise<FileText | null> {
  const { bytes, etag } = await readBytes(place, path, version, bytesMax);
  const found = decoded(bytes, bytesMax === undefined);
  return found && { ...found, etag };
}

/**
 * Keep a new version of a file, if it still is what it was; a `Problem` of status 412 says it is not.
 *
 * The entity tag of the new version.
 */
export async function writeFile(
  place: Place,
  path: string,
  order: { text: string; etag: string; message: string },
): Promise<string> {
  const to = withQuery(fileAddress(place, path), { message: order.message });
  const answer = await putFile(to, order.text, { "If-Match": order.etag });
  return answer.headers.get("ETag") ?? "";
}

/** Keep a file's content encrypted from now on, if it still is what it was when it is read. */
export async function sealFile(place: Place, path: string): Promise<void> {
  const { bytes, etag } = await readBytes(place, path);
  const query = { sealed: true, message: "sealed in the console" };
  await putFile(withQuery(fileAddress(place, path), query), bytes, { "If-Match": etag });
}

/** Keep a file as it was in a version beside today's, under a name that must be free; sealed if it was. */
export async function keepBeside(place: Place, path: string, version: number, name: string): Promise<void> {
  const { revisions } = await get<FileHistory>(`${tenantAddress(place)}/file-history`, { path });
  const sealed = revisions.find((one) => one.version <= version)?.sealed ?? false;
  const { bytes } = await readBytes(place, path, version);
  const query = { sealed, message: "kept beside a newer file" };
  await putFile(withQuery(fileAddress(place, name), query), bytes, { "If-None-Match": "*" });
}

function putFile(to: string, content: BlobPart, condition: Record<string, string>): Promise<Response> {
  return send("PUT", to, {
    content: new Blob([content], { type: "application/octet-stream" }),
    headers: { ...condition, "Content-Type": "application/octet-stream" },
  });
}

export function setTag(place: Place, name: string, version: number, condition: Condition): Promise<unknown> {
  return change("PUT", `${tenantAddress(place)}/tags/${encodeURIComponent(name)}`, condition, {
    body: { version },
  });
}

export function removeTag(place: Place, name: string, condition: Condition): Promise<unknown> {
  return change("DELETE", `${tenantAddress(place)}/tags/${encodeURIComponent(name)}`, condition);
}

export function cancelJob(place: Place, jobId: string): Promise<Job> {
  return change("POST", `${tenantAddress(place)}/jobs/${encodeURIComponent(jobId)}/cancel`, "of the queue");
}

export function publishJob(place: Place, jobId: string): Promise<Job> {
  return change("POST", `${tenantAddress(place)}/jobs/${encodeURIComponent(jobId)}/publish`, "of the queue");
}

export function discardJob(place: Place, jobId: string): Promise<Job> {
  return change("POST", `${tenantAddress(place)}/jobs/${encodeURIComponent(jobId)}/discard`, "of the queue");
}

export function createKey(order: NewKey): Promise<KeyWithSecret> {
  return change("POST", address`/keys`, "a new thing", { body: order });
}

export function revokeKey(id: string): Promise<unknown> {
  return change("DELETE", address`/keys/${id}`, "of the queue");
}

export function rotateKey(id: string, overlapHours: number): Promise<KeyWithSecret> {
  return change("POST", address`/keys/${id}/rotate`, "of the queue", {
    body: { overlap_hours: overlapHours },
  });
}

export function setPolicy(place: Place, policy: Policy, condition: Condition): Promise<Policy> {
  return change("PUT", `${tenantAddress(place)}/policy`, condition, { body: policy });
}

export function runJob(
  place: Place,
  order: Pick<NewJob, "script" | "parameters" | "dry_run" | "message">,
): Promise<Job> {
  return change("POST", `${tenantAddress(place)}/jobs`, "a new thing", { body: order });
}

/** Runs a job again that has ended, under an id of its own. */
export function repeatJob(place: Place, jobId: string): Promise<Job> {
  return change(
    "POST",
    `${tenantAddress(place)}/jobs/${encodeURIComponent(jobId)}/repetitions`,
    "a new thing",
  );
}

/** Runs the request of a job once more without a commit: it says what the job would change. */
export function dryRunJob(place: Place, jobId: string): Promise<Job> {
  return change("POST", `${tenantAddress(place)}/jobs/${encodeURIComponent(jobId)}/dry-runs`, "a new thing");
}

/** Runs jobs again from their kept inputs, as a held job; without a script each with its own. */
export function replayJobs(place: Place, jobs: readonly string[], script: string): Promise<Job> {
  return change("POST", `${tenantAddress(place)}/replays`, "a new thing", { body: { jobs, script } });
}

/** How a file's rows come into a stream, and of what kind they are. */
export interface ImportOrder {
  key: readonly string[];
  mode: "upsert" | "full";
  kind: "csv" | "parquet" | "jsonl" | "arrow";
  message: string;
}

/** Of the stream that was shown; the job's commit keeps it too. */
export type BoundImport = ImportOrder & { condition: Condition };

export const MEDIA_TYPES: Readonly<Record<ImportOrder["kind"], string>> = {
  csv: "text/csv",
  parquet: "application/vnd.apache.parquet",
  jsonl: "application/x-ndjson",
  arrow: "application/vnd.apache.arrow.file",
};

/** Brings a file's rows into a stream, as a job. */
export function importRows(place: Place, stream: string, file: Blob, order: BoundImport): Promise<Job> {
  return change("POST", `${streamAddress(place, stream)}/import`, order.condition, {
    query: { key: order.key, mode: order.mode, message: order.message },
    content: file,
    headers: { "Content-Type": MEDIA_TYPES[order.kind] },
  });
}

/** The same with the rows of a staged blob, which is then gone; asked for again it is the same job. */
export function importBlob(place: Place, stream: string, blob: string, order: BoundImport): Promise<Job> {
  return change("POST", `${streamAddress(place, stream)}/import`, order.condition, {
    query: { key: order.key, mode: order.mode, message: order.message },
    body: { blob, kind: order.kind },
    headers: { "Idempotency-Key": `import-${blob}` },
    isUnkeyed: true,
  });
}
