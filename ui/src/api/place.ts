// Which tenant of which environment, and its address.
import { address, pathAddress, withQuery } from "./client";

export interface Place {
  environment: string;
  tenant: string;
}

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
  format: "csv" | "parquet" | "jsonl",
  version?: number,
): string {
  return withQuery(`${streamAddress(place, stream)}/export`, { format, version });
}

export interface Chosen {
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
