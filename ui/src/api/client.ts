// One way to the service: JSON in and out, problems thrown, conditions and idempotency keys as headers.
import { type Problem, problemFrom, unreachable } from "./problem";

export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

interface RequestOptions {
  query?: Query;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is. */
  content?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Without a key of its own making: nobody is known yet, nothing is kept, or the headers have one. */
  isUnkeyed?: boolean;
}

/** Random; `crypto.randomUUID` is there on secure origins only, which a service in a company's network need not be. */
function idempotencyKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

const API = "/api/v1";

/** The address of something of the service, its names escaped one by one. */
export function address(names: TemplateStringsArray, ...values: (string | number)[]): string {
  return API + names.reduce((path, text, index) => path + String(escaped(values[index - 1])) + text);
}

/** A file's path keeps its slashes; all else in it is escaped. */
function pathAddress(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

export function withQuery(url: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  const text = search.toString();
  return text ? `${url}?${text}` : url;
}

/** The service's answer, whatever its content; a refusal is thrown as a `Problem`. */
export async function send(method: string, url: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (method === "POST" && !options.isUnkeyed) headers["Idempotency-Key"] = idempotencyKey();
  let answer: Response;
  try {
    answer = await fetch(withQuery(url, options.query), {
      method,
      headers,
      body: options.content ?? (options.body === undefined ? null : JSON.stringify(options.body)),
      credentials: "same-origin",
      cache: "no-store",
      signal: options.signal ?? null,
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

/** The JSON value that the service answers with; `undefined` where it has nothing to say. */
export async function call<T>(method: string, url: string, options: RequestOptions = {}): Promise<T> {
  const answer = await send(method, url, options);
  const text = await answer.text();
  return (text ? exactJson(text) : undefined) as T;
}

/** Why a change is not bound to what was shown. */
const UNCONDITIONAL = {
  "a session": "It is the person's own, and no data of a tenant changes.",
  "a new thing": "It gets an id of its own, or is refused where the name is taken.",
  "in the body": "Each file of a batch has its own condition there.",
  "only a check": "Nothing changes.",
  "one's own": "Nobody else changes it.",
  "of the queue": "It changes a key, a job or a schedule by its id, and no data of a tenant.",
} as const;
/** The state that a change rests on, or why it rests on none. */
export type Condition = { "If-Match": string } | { "If-None-Match": "*" } | keyof typeof UNCONDITIONAL;

/** The condition that something is what was shown; without a tag there was nothing. */
export function unchanged(etag: string | null | undefined): Condition {
  return etag ? { "If-Match": etag } : { "If-None-Match": "*" };
}

/** A change through the service; every one of the console says which state it rests on. */
export function change<T>(
  method: "POST" | "PUT" | "PATCH" | "DELETE",
  url: string,
  condition: Condition,
  options: RequestOptions = {},
): Promise<T> {
  const headers = { ...options.headers, ...(typeof condition === "object" && condition) };
  return call<T>(method, url, { ...options, headers });
}

export function get<T>(url: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return call<T>("GET", url, { ...(query && { query }), ...(signal && { signal }) });
}

async function refusal(answer: Response): Promise<Problem> {
  return problemFrom(answer.status, await answer.text(), answer.headers.get("X-Request-Id") ?? "");
}

function escaped(value: string | number | undefined): string {
  return encodeURIComponent(String(value ?? ""));
}

type Reviver = (this: unknown, name: string, value: unknown, context?: { source?: string }) => unknown;

const exactly: Reviver = (_name, value, context) => {
  if (typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  // Browsers that do not give the source yet show the nearest number, as they always did.
  return context?.source ?? value;
};

/** JSON without loss: an integer that JavaScript cannot hold exactly becomes the text it was written as. */
export function exactJson(text: string): unknown {
  return JSON.parse(text, exactly as (this: unknown, name: string, value: unknown) => unknown);
}

export interface Place {
  environment: string;
  tenant: string;
}

/** Which tenant of which environment, and its address. */
export function tenantAddress(place: Place): string {
  return address`/environments/${place.environment}/tenants/${place.tenant}`;
}

export function streamAddress(place: Place, stream: string): string {
  return `${tenantAddress(place)}/streams/${encodeURIComponent(stream)}`;
}

export function fileAddress(place: Place, path: string, version?: number): string {
  return withQuery(`${tenantAddress(place)}/files/${pathAddress(path)}`, { version });
}

/** The first part of the keys of all that is cached about a tenant. */
export function tenantKey(place: Place): readonly string[] {
  return ["tenant", place.environment, place.tenant];
}

export function exportAddress(
  place: Place,
  stream: string,
  format: "csv" | "parquet" | "jsonl" | "xlsx",
  version?: number,
): string {
  return withQuery(`${streamAddress(place, stream)}/export`, { format, version });
}

interface Chosen {
  files: readonly string[];
  folders: readonly string[];
  streams: readonly string[];
}

export function bundleAddress(place: Place, chosen: Chosen, version?: number): string {
  return withQuery(`${tenantAddress(place)}/bundle`, {
    file: chosen.files,
    folder: chosen.folders,
    stream: chosen.streams,
    version,
  });
}

/** Where a job's notebook is, as it was executed. */
export function notebookAddress(place: Place, jobId: string): string {
  return `${tenantAddress(place)}/jobs/${encodeURIComponent(jobId)}/notebook`;
}
