// The service's values by short names; they are generated from its OpenAPI document (schema.d.ts).
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Who = Schemas["Who"];
export type Scope = Who["scopes"][number];
export type TenantPage = Schemas["TenantPage"];
export type Overview = Schemas["Overview"];
export type TenantSummary = Schemas["TenantSummary"];
export type StreamOverview = Schemas["StreamOverview"];
export type StreamDetail = Schemas["StreamDetail"];
export type Rows = Schemas["Rows"];
export type FilePage = Schemas["FilePage"];
export type FileEntry = Schemas["File"];
export type FileHistory = Schemas["FileHistory"];
export type TenantVersion = Schemas["TenantVersion"];
export type HistoryPage = Schemas["HistoryPage"];
export type Difference = Schemas["Difference"];
export type RowDifference = Schemas["RowDifference"];
export type ChangedRow = Schemas["ChangedRow"];
export type Restoration = Schemas["Restoration"];
export type RestorationOrder = Schemas["RestorationOrder"];
export type Job = Schemas["Job"];
export type JobStatus = Job["status"];
export type JobPage = Schemas["JobPage"];
export type Key = Schemas["Key"];
export type KeyPage = Schemas["KeyPage"];
export type KeyWithSecret = Schemas["KeyWithSecret"];
export type NewKey = Schemas["NewKey"];
export type AuditPage = Schemas["AuditPage"];
export type AuditEntry = Schemas["AuditEntry"];
export type Policy = Schemas["Policy"];
