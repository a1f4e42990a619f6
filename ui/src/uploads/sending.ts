// How a file's bytes get to the service: as a staged blob, with progress and a stop.
import type { ImportOrder } from "@/api/changes";
import { withQuery } from "@/api/client";
import { type Place, tenantAddress } from "@/api/place";
import { asProblem, Problem, problemFrom, unreachable } from "@/api/problem";

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

const RETRY_DELAYS_MS = [1000, 5000, 15000];
/** The network or the service is away for a moment: nothing, or what a proxy says then. */
const AWAY = new Set([0, 502, 503, 504]);

/** Sends the bytes; `done` is the blob's id. After an interruption they are sent again from the beginning. */
export function sendBlob(upload: Sendable, onProgress: (sent: number) => void): Running<string> {
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
