// The service's values by short names; they are generated from its OpenAPI document (schema.d.ts, made by `npm run types`).
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Who = Schemas["Who"];
export type SignInWays = Schemas["SignInWays"];
export type Scope = Who["scopes"][number];
export type TenantPage = Schemas["TenantPage"];
export type Overview = Schemas["Overview"];
export type TenantSummaries = Schemas["TenantSummaries"];
export type TenantSummary = Schemas["TenantSummary"];
export type UnreadableTenant = Schemas["UnreadableTenant"];
export type EnvironmentOverview = Schemas["EnvironmentOverview"];
export type FailedJob = Schemas["FailedJob"];
export type TenantWithFindings = Schemas["TenantWithFindings"];
export type ColumnChanges = Schemas["ColumnChanges"];
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
export type DeliveryList = Schemas["DeliveryList"];
export type DeliveryReport = Schemas["DeliveryReport"];
export type UndeliveredRow = Schemas["UndeliveredRow"];
export type RetriedRows = Schemas["RetriedRows"];
export type Restoration = Schemas["Restoration"];
export type RestorationOrder = Schemas["RestorationOrder"];
export type Reversion = Schemas["Reversion"];
export type StreamReversion = Schemas["StreamReversion"];
export type KeptRow = Schemas["KeptRow"];
export type RowOrigin = Schemas["RowOrigin"];
export type CellOrigin = Schemas["CellOrigin"];
export type Job = Schemas["Job"];
export type JobStatus = Job["status"];
export type JobPage = Schemas["JobPage"];
export type JobGroup = Schemas["JobGroup"];
export type NewJobGroup = Pick<
  Schemas["NewJobGroup"],
  "script" | "parameters" | "prefix" | "dry_run" | "canary" | "message"
>;
export type DryRunChanges = Schemas["DryRunChanges"];
export type GroupEffects = Schemas["GroupEffects"];
export type GroupDecision = Schemas["GroupDecision"];
export type Script = Schemas["Script"];
export type ScriptParameter = Schemas["ScriptParameter"];
export type Schedule = Schemas["Schedule"];
export type SchedulePage = Schemas["SchedulePage"];
export type NewJob = Schemas["NewJob"];
export type NewSchedule = Pick<
  Schemas["NewSchedule"],
  "name" | "script" | "parameters" | "cron" | "zone" | "message"
>;
export type Key = Schemas["Key"];
export type KeyPage = Schemas["KeyPage"];
export type KeyWithSecret = Schemas["KeyWithSecret"];
export type NewKey = Schemas["NewKey"];
export type AuditPage = Schemas["AuditPage"];
export type AuditEntry = Schemas["AuditEntry"];
export type Policy = Schemas["Policy"];
export type SortedRows = Schemas["SortedRows"];
export type StreamStatistics = Schemas["StreamStatistics"];
export type ColumnStatistics = Schemas["ColumnStatistics"];
export type ImportPreview = Schemas["ImportPreview"];
export type RowHistory = Schemas["RowHistory"];
export type RowVersion = Schemas["RowVersion"];
export type RowChange = Schemas["RowChange"];
export type RowChangeOrder = Schemas["RowChangeOrder"];
export type RowErasure = Schemas["RowErasure"];
export type RowRestoration = Schemas["RowRestoration"];
export type RowRestorationOrder = Schemas["RowRestorationOrder"];
