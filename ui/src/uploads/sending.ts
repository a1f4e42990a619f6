// The two ways in which a file's bytes get to the service, each with progress and a stop.
import { type DetailedError, Upload as TusUpload } from "tus-js-client";
import { fileAddress, type Place, tenantAddress } from "@/api/place";
import { Problem, problemFrom, unreachable } from "@/api/problem";

export interface Running {
  done: Promise<void>;
  stop: () => void;
}

export interface Sendable {
  place: Place;
  path: string;
  file: File;
  replaces: boolean;
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
  let sending: TusUpload | undefined;
  const done = new Promise<void>((resolve, reject) => {
    sending = new TusUpload(upload.file, {
      endpoint: `${tenantAddress(upload.place)}/uploads`,
      chunkSize: PIECE_BYTES,
      retryDelays: RETRY_DELAYS_MS,
      removeFingerprintOnSuccess: true,
      metadata: { path: upload.path, filename: upload.path },
      headers: upload.replaces ? {} : { "If-None-Match": "*" },
      onProgress,
      onSuccess: () => resolve(),
      onError: (error) => reject(tusProblem(error)),
    });
    void sending.findPreviousUploads().then((previous) => {
      const mine = previous.find((one) => one.metadata.path === upload.path);
      if (mine) sending?.resumeFromPreviousUpload(mine);
      sending?.start();
    });
  });
  return { done, stop: () => void sending?.abort(true) };
}

function tusProblem(error: Error | DetailedError): Problem {
  const answer = "originalResponse" in error ? error.originalResponse : null;
  if (!answer) return unreachable();
  return problemFrom(answer.getStatus(), answer.getBody(), answer.getHeader("X-Request-Id") ?? "");
}
