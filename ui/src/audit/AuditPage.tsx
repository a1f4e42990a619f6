// Audit of a tenant or to the service, for admins: a chain shows if an entry was changed.
import { Badge, Button, Group, Select, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type Place, withQuery } from "@/api/client";
import {
  type AuditChoice,
  auditAddress,
  auditProofQuery,
  auditQuery,
  tenantsQuery,
  useList,
} from "@/api/queries";
import type { AuditEntry } from "@/api/types";
import { PageHead } from "@/navigation/PageHead";
import { principalName } from "@/parts/formats";
import { EmptyNote, Placeholder, ProblemNote } from "@/parts/states";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import { CopyText, DATED, Moment } from "@/parts/values";
import { useEnvironment } from "@/session/session";

const SERVICE_ACTIONS = [
  { value: "session.begin", label: "Signed in" },
  { value: "session.end", label: "Signed out" },
  { value: "key.create", label: "Key created" },
  { value: "key.rotate", label: "Key rotated" },
  { value: "key.revoke", label: "Key revoked" },
  { value: "master_key.rotate", label: "Master key rotated" },
  { value: "tenant.delete", label: "Tenant deleted" },
];
const ACTIONS = [
  { value: "file.unseal", label: "Sealed file read" },
  { value: "file.write", label: "File written" },
  { value: "file.delete", label: "File deleted" },
  { value: "file.move", label: "File moved" },
  { value: "folder.move", label: "Folder moved" },
  { value: "stream.restore", label: "Stream restored" },
  { value: "tenant.restore", label: "Tenant restored" },
  { value: "stream.drop", label: "Stream deleted" },
  { value: "stream.import", label: "Rows imported" },
  { value: "job.run", label: "Job run" },
  { value: "schedule.create", label: "Schedule created" },
  { value: "schedule.change", label: "Schedule changed" },
  { value: "schedule.delete", label: "Schedule deleted" },
];
const DAY_MS = 86_400_000;
const COLUMNS: readonly Column<AuditEntry>[] = [
  { id: "at", header: "When", width: DATED, cell: (entry) => <Moment at={entry.moment} isDated /> },
  {
    id: "who",
    header: "Who",
    width: "minmax(110px, 1fr)",
    cell: (entry) => <span title={entry.principal}>{principalName(entry.principal)}</span>,
  },
  {
    id: "action",
    header: "Action",
    width: "140px",
    cell: (entry) =>
      [...ACTIONS, ...SERVICE_ACTIONS].find((one) => one.value === entry.action)?.label ?? entry.action,
  },
  {
    id: "subject",
    header: "What",
    width: "minmax(110px, 1.3fr)",
    cell: (entry) => <span title={entry.subject}>{entry.subject}</span>,
  },
  {
    id: "details",
    header: "Details",
    width: "minmax(90px, 1fr)",
    isExtra: true,
    cell: (entry) => <span className="mono">{details(entry)}</span>,
  },
  {
    id: "request",
    header: "Request",
    width: "110px",
    isExtra: true,
    cell: (entry) => (
      <CopyText text={entry.request_id} shown={entry.request_id.slice(0, 8)} label="request id" />
    ),
  },
];

export function AuditPage() {
  const environment = useEnvironment();
  const search = useSearch({ from: "/signed-in/audit" });
  const navigate = useNavigate({ from: "/audit" });
  const { entries: ids } = useList(tenantsQuery(environment), (page) => page.tenants);
  const go = (changes: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...changes }) });
  const place = search.tenant ? { environment, tenant: search.tenant } : null;
  const choice: AuditChoice = {
    action: search.action,
    subject: search.subject,
    since: search.since && `${search.since}T00:00:00Z`,
    // The last day is meant as well.
    until: search.until && new Date(Date.parse(search.until) + DAY_MS).toISOString(),
  };
  return (
    <div className="page">
      <PageHead title="Audit">
        <Button
          component="a"
          size="sm"
          download
          href={withQuery(`${auditAddress(place)}/export`, { ...choice, format: "csv" })}
        >
          Download CSV
        </Button>
      </PageHead>
      <div className="page-filters">
        <Select
          label="Tenant"
          placeholder="The service"
          searchable
          clearable
          limit={50}
          data={search.tenant && !ids.includes(search.tenant) ? [search.tenant, ...ids] : ids}
          value={search.tenant ?? null}
          onChange={(value) => go({ tenant: value ?? undefined, action: undefined })}
        />
        <Select
          label="Action"
          placeholder="Any action"
          clearable
          data={search.tenant ? ACTIONS : SERVICE_ACTIONS}
          value={search.action ?? null}
          onChange={(value) => go({ action: value ?? undefined })}
        />
        <TextInput
          label="Subject"
          placeholder={search.tenant ? "File, stream or job" : "Key, person or tenant"}
          value={search.subject ?? ""}
          onChange={(event) => go({ subject: event.currentTarget.value || undefined })}
        />
        {(["since", "until"] as const).map((end) => (
          <TextInput
            key={end}
            type="date"
            label={end === "since" ? "From (UTC)" : "To (UTC)"}
            value={search[end] ?? ""}
            onChange={(event) => go({ [end]: event.currentTarget.value || undefined })}
          />
        ))}
      </div>
      <Entries place={place} choice={choice} />
    </div>
  );
}

function Entries({ place, choice }: { place: Place | null; choice: AuditChoice }) {
  const { query, entries, more } = useList(auditQuery(place, choice), (page) => page.entries);
  const proof = useQuery(auditProofQuery);
  if (!query.data) return <Placeholder query={query} />;
  if (entries.length === 0) return <EmptyNote title="No entry matches." />;
  return (
    <>
      <VirtualGrid
        label={`Audit of ${place?.tenant ?? "the service"}`}
        rows={entries}
        columns={COLUMNS}
        keyOf={(entry) => String(entry.number)}
        onNearEnd={more}
      />
      <Group gap="xs">
        <Button size="xs" loading={proof.isFetching} onClick={() => void proof.refetch()}>
          Verify all entries
        </Button>
        {proof.data && (
          <>
            <Badge color={proof.data.is_whole ? "green" : "red"} variant="dot" size="sm">
              {proof.data.is_whole ? "whole" : "broken"}
            </Badge>
            <Text size="xs" c="dimmed">
              {proof.data.is_whole
                ? "No entry was changed or deleted."
                : `Entry ${proof.data.broken_at} was changed after it was written.`}
            </Text>
          </>
        )}
        {proof.isError && <ProblemNote error={proof.error} />}
      </Group>
    </>
  );
}

function details(entry: AuditEntry): string {
  const told = Object.entries(entry.details);
  return told
    .map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
    .join(" ");
}
