// The ways in which a file's bytes get to the service, each with progress and a stop.
import { type DetailedError, defaultOptions, Upload as TusUpload, type UploadOptions } from "tus-js-client";
import { type ImportOrder, importUpload } from "@/api/changes";
import { fileAddress, type Place, tenantAddress } from "@/api/place";
import { Problem, problemFrom, unreachable } from "@/api/problem";
import type { Job } from "@/api/types";

export interface Running<Done = unknown> {
  done: Promise<Done>;
  stop: () => void;
}

export interface Sendable {
  place: Place;
  path: string;
  file: File;
  replaces: boolean;
  /** The file is not a file of the tenant's but rows for a stream. */
  rows?: RowsOrder;
}

export interface RowsOrder extends ImportOrder {
  stream: string;
}

const PIECE_BYTES = 16 * 1024 * 1024;
const RETRY_DELAYS_MS = [0, 1000, 3000, 5000, 10000, 20000];

/** One request; `fetch` tells nothing of its progress, so it is the older way. */
export function sendWhole(upload: Sendable, onProgress: (sent: number) => void): Running {
  const request = new XMLHttpRequest();
  const done = new Promise<void>((resolve, reject) => {
    request.open("PUT", fileAddress(upload.place, upload.path));
    request.setRequestHeader("Content-Type", "application/octet-stream");
    if (!upload.replaces) request.setRequestHeader("If-None-Match", "*");
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onload = () => {
      if (request.status < 300) resolve();
      else
        reject(
          problemFrom(request.status, request.responseText, request.getResponseHeader("X-Request-Id") ?? ""),
        );
    };
    request.onerror = () => reject(unreachable());
    request.onabort = () => reject(new Problem(0, "CANCELLED", "Cancelled."));
    request.send(upload.file);
  });
  return { done, stop: () => request.abort() };
}

/** In pieces, which goes on after an interruption, also in another hour or after the page was closed. */
export function sendResumable(upload: Sendable, onProgress: (sent: number) => void): Running {
  return inPieces(
    upload,
    { path: upload.path, filename: upload.path },
    {
      removeFingerprintOnSuccess: true,
      headers: upload.replaces ? {} : { "If-None-Match": "*" },
      onProgress,
    },
  );
}

/** The bytes of a file of a batch: they wait at the service until the batch is written. */
export interface SentUpload {
  id: string;
  forget: () => Promise<void>;
}

/** `isKept`: remembered in the browser, so that it goes on after the page was closed. */
export function sendWaiting(
  upload: Sendable,
  onProgress: (sent: number) => void,
  isKept: boolean,
): Running<SentUpload> {
  const metadata = { purpose: "batch", path: upload.path, filename: upload.path };
  const pieces = inPieces(upload, metadata, { onProgress, storeFingerprintForResuming: isKept });
  return {
    done: pieces.done.then((sent) => ({ id: idOf(sent), forget: () => forget(sent, metadata) })),
    stop: pieces.stop,
  };
}

/**
 * Rows in pieces, then the import that names them; `done` is its job.
 *
 * What was sent is remembered until the import is there, so that a second try starts with that.
 */
export function sendRows(
  upload: Sendable,
  rows: RowsOrder,
  onProgress: (sent: number) => void,
): Running<Job> {
  const metadata = { purpose: "import", filename: upload.path, stream: rows.stream };
  const pieces = inPieces(upload, metadata, { onProgress });
  async function start(): Promise<Job> {
    const sent = await pieces.done;
    const job = await importUpload(upload.place, rows.stream, idOf(sent), rows);
    await forget(sent, metadata);
    return job;
  }
  return { done: start(), stop: pieces.stop };
}

function idOf(sent: TusUpload): string {
  return new URL(sent.url ?? "", location.href).pathname.split("/").at(-1) ?? "";
}

async function forget(sent: TusUpload, metadata: Metadata): Promise<void> {
  for (const one of await sent.findPreviousUploads())
    if (isSame(one.metadata, metadata)) await defaultOptions.urlStorage?.removeUpload(one.urlStorageKey);
}

type Metadata = Record<string, string>;

function inPieces(upload: Sendable, metadata: Metadata, options: UploadOptions): Running<TusUpload> {
  let sending: TusUpload | undefined;
  const done = new Promise<TusUpload>((resolve, reject) => {
    const begun = new TusUpload(upload.file, {
      ...options,
      endpoint: `${tenantAddress(upload.place)}/uploads`,
      chunkSize: PIECE_BYTES,
      retryDelays: RETRY_DELAYS_MS,
      metadata,
      onSuccess: () => resolve(begun),
      onError: (error) => reject(tusProblem(error)),
    });
    sending = begun;
    if (options.storeFingerprintForResuming === false) return begun.start();
    void begun.findPreviousUploads().then((previous) => {
      const mine = previous.find((one) => isSame(one.metadata, metadata));
      if (mine) begun.resumeFromPreviousUpload(mine);
      begun.start();
    });
  });
  return { done, stop: () => void sending?.abort(true) };
}

function isSame(one: Metadata, other: Metadata): boolean {
  return ["purpose", "path", "filename", "stream"].every((name) => one[name] === other[name]);
}

function tusProblem(error: Error | DetailedError): Problem {
  const answer = "originalResponse" in error ? error.originalResponse : null;
  if (!answer) return unreachable();
  return problemFrom(answer.getStatus(), answer.getBody(), answer.getHeader("X-Request-Id") ?? "");
}
