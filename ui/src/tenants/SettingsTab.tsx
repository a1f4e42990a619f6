// How long a tenant's versions are kept, its tags, and who did what to it.
import { Button, Group, NumberInput, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { cloneTenant, deleteTenant, removeTag, setPolicy } from "@/api/changes";
import { tenantKey, unchanged } from "@/api/client";
import { overviewQuery, policyQuery, shownTenant, tagsQuery } from "@/api/queries";
import type { Overview } from "@/api/types";
import { usePanel } from "@/navigation/panel";
import { NameDialog } from "@/parts/dialogs";
import { counted } from "@/parts/formats";
import { PlainTable } from "@/parts/PlainTable";
import { Placeholder, ProblemNote } from "@/parts/states";
import type { Column } from "@/parts/VirtualGrid";
import { useMay } from "@/session/session";
import { EraseDialog } from "./EraseDialog";

export default function SettingsTab() {
  const may = useMay();
  const { place } = usePanel();
  return (
    <Stack gap="lg">
      <Retention />
      <Tags />
      <Link
        className="text-link tight"
        to="/compare"
        search={{ env: place.environment, left: place.tenant, right: undefined, other: undefined }}
      >
        Compare {place.tenant} with another tenant
      </Link>
      <Ending />
      {may("admin") && (
        <Link
          className="text-link tight"
          to="/audit"
          search={{ env: place.environment, tenant: place.tenant, action: undefined, subject: undefined }}
        >
          Audit of {place.tenant}
        </Link>
      )}
    </Stack>
  );
}

/** A copy of the tenant under another id, and its end, after its id was typed. */
function Ending() {
  const { place } = usePanel();
  const may = useMay();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [dialog, setDialog] = useState<"copy" | "erase" | "delete" | null>(null);
  const [shown, setShown] = useState<Overview>();
  const { data: now } = useQuery(overviewQuery(place));
  const close = () => setDialog(null);
  async function leave(tenant?: string) {
    await client.invalidateQueries({ queryKey: ["tenants"] });
    const search = { env: place.environment };
    if (tenant === undefined) await navigate({ to: "/tenants", search });
    else await navigate({ to: "/tenants/$tenant", params: { tenant }, search });
  }
  return (
    <Group gap="xs">
      {may("snapshots:write") && <Button onClick={() => setDialog("copy")}>Copy to a new tenant…</Button>}
      {may("snapshots:delete") && <Button onClick={() => setDialog("erase")}>Erase a person…</Button>}
      {may("snapshots:delete") && now && (
        <Button
          color="red"
          variant="outline"
          onClick={() => {
            setShown(now);
            setDialog("delete");
          }}
        >
          Delete this tenant…
        </Button>
      )}
      {dialog === "erase" && <EraseDialog onClose={close} />}
      {dialog === "copy" && (
        <NameDialog
          title={`Copy ${place.tenant}`}
          label="Id of the new tenant"
          description="It gets the newest streams and files, and none of the past."
          action="Copy"
          onSubmit={async (tenant) => {
            await cloneTenant(place, tenant);
            void leave(tenant);
          }}
          onClose={close}
        />
      )}
      {dialog === "delete" && shown && (
        <NameDialog
          title={`Delete ${place.tenant} for good?`}
          label={`Type ${place.tenant} to confirm`}
          description={`${counted(shown.streams.length, "stream")} with ${counted(
            shown.streams.reduce((sum, one) => sum + one.rows, 0),
            "row",
          )}, ${counted(shown.files, "file")}, all ${counted(shown.version + 1, "version")}, its jobs and schedules go.`}
          action="Delete"
          expected={place.tenant}
          onSubmit={async () => {
            await deleteTenant(place, unchanged(shown.etag));
            void leave();
          }}
          onClose={close}
        />
      )}
    </Group>
  );
}

function Retention() {
  const { place } = usePanel();
  const may = useMay();
  const client = useQueryClient();
  const policy = useQuery(policyQuery(place));
  const [versions, setVersions] = useState<number | string | undefined>();
  const [days, setDays] = useState<number | string | undefined>();
  const saving = useMutation({
    mutationFn: () =>
      setPolicy(
        place,
        {
          keep_versions: limit(versions ?? policy.data?.keep_versions),
          keep_days: limit(days ?? policy.data?.keep_days),
        },
        shownTenant(client, place),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: tenantKey(place) }),
  });
  if (!policy.data) return <Placeholder query={policy} lines={2} />;
  const isAdmin = may("admin");
  return (
    <section aria-label="Retention">
      <Title order={3} size="h5">
        Retention
      </Title>
      <Text c="dimmed" mb="xs">
        A version is kept if it is within either limit; without limits all versions are kept.
      </Text>
      <Group align="flex-end">
        <NumberInput
          label="Newest versions"
          min={1}
          allowDecimal={false}
          disabled={!isAdmin}
          value={versions ?? policy.data.keep_versions ?? ""}
          onChange={setVersions}
          placeholder="all"
        />
        <NumberInput
          label="Days"
          min={0}
          disabled={!isAdmin}
          value={days ?? policy.data.keep_days ?? ""}
          onChange={setDays}
          placeholder="all"
        />
        {isAdmin && (
          <Button size="sm" variant="filled" onClick={() => saving.mutate()} loading={saving.isPending}>
            Save
          </Button>
        )}
      </Group>
      {saving.isError && <ProblemNote error={saving.error} />}
    </section>
  );
}

function Tags() {
  const { place, go } = usePanel();
  const may = useMay();
  const client = useQueryClient();
  const tags = useQuery(tagsQuery(place));
  const removing = useMutation({
    mutationFn: (name: string) => removeTag(place, name, shownTenant(client, place)),
    onSuccess: () => client.invalidateQueries({ queryKey: tenantKey(place) }),
  });
  const found = Object.entries(tags.data?.tags ?? {});
  const columns: Column<[string, number]>[] = [
    { id: "tag", header: "Tag", cell: ([name]) => name },
    {
      id: "version",
      header: "Version",
      align: "right",
      cell: ([, version]) => (
        <Button size="compact-xs" variant="subtle" onClick={() => go({ v: version, panel: "snapshots" })}>
          version {version}
        </Button>
      ),
    },
    {
      id: "actions",
      header: "Actions",
      align: "right",
      cell: ([name]) =>
        may("snapshots:delete") && (
          <Button size="compact-xs" aria-label={`Remove: ${name}`} onClick={() => removing.mutate(name)}>
            Remove
          </Button>
        ),
    },
  ];
  return (
    <section aria-label="Tags">
      <Title order={3} size="h5">
        Tags
      </Title>
      {tags.isLoadingError ? (
        <ProblemNote error={tags.error} onRetry={() => tags.refetch()} />
      ) : found.length === 0 ? (
        <Text c="dimmed">
          No tag yet. Tag a version in the History tab to name it and keep it regardless of the retention.
        </Text>
      ) : (
        <PlainTable label="Tags" columns={columns} rows={found} keyOf={([name]) => name} />
      )}
      {removing.isError && <ProblemNote error={removing.error} />}
    </section>
  );
}

function limit(value: number | string | null | undefined): number | null {
  return typeof value === "number" ? value : null;
}
