// A script of the service's folder, for a tenant, at times that a cron expression says.
import { Autocomplete, Select, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { change, type Place, tenantAddress } from "@/api/client";
import { tenantsQuery, useList } from "@/api/queries";
import type { NewSchedule, Schedule } from "@/api/types";
import { exactText } from "@/parts/formats";
import { tell } from "@/parts/toasts";
import { ScriptDialog, type ScriptOrder } from "./ScriptDialog";

const TIMES = ["0 * * * *", "0 6 * * *", "0 6 * * 1-5", "0 0 1 * *"];

interface CreateScheduleProps {
  environment: string;
  /** Whose page it is on; without it a tenant is chosen. */
  tenant?: string;
  onClose: () => void;
}

export function CreateSchedule({ environment, tenant: own, onClose }: CreateScheduleProps) {
  const client = useQueryClient();
  const [tenant, setTenant] = useState<string | null>(own ?? null);
  const [name, setName] = useState<string>();
  const [cron, setCron] = useState("0 6 * * *");
  const [zone, setZone] = useState(Intl.DateTimeFormat().resolvedOptions().timeZone);
  async function create({ dry_run: _, ...order }: ScriptOrder) {
    if (tenant === null) return;
    const made = await createSchedule(
      { environment, tenant },
      { ...order, name: (name ?? nameOf(order.script)).trim(), cron, zone: zone.trim() },
    );
    void client.invalidateQueries({ queryKey: ["schedules", environment] });
    if (made.next_due) tell(`${made.name} of ${made.tenant} runs next at ${exactText(made.next_due, zone)}.`);
  }
  return (
    <ScriptDialog
      title="Create schedule"
      verb="Create"
      first={
        own === undefined && <TenantField environment={environment} value={tenant} onChange={setTenant} />
      }
      isMissing={tenant === null}
      onRun={create}
      onClose={onClose}
    >
      {(script) => (
        <>
          <TextInput
            label="Name"
            required
            value={name ?? nameOf(script)}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Autocomplete
            label="When"
            description="Minute, hour, day of month, month, day of week; or @daily."
            required
            data={TIMES}
            value={cron}
            onChange={setCron}
          />
          <TextInput
            label="Time zone"
            required
            value={zone}
            onChange={(event) => setZone(event.currentTarget.value)}
          />
        </>
      )}
    </ScriptDialog>
  );
}

interface TenantFieldProps {
  environment: string;
  value: string | null;
  onChange: (tenant: string | null) => void;
}

function TenantField({ environment, value, onChange }: TenantFieldProps) {
  const tenants = useList(tenantsQuery(environment), (page) => page.tenants);
  return (
    <Select
      data-autofocus
      label="Tenant"
      required
      searchable
      openOnFocus={false}
      limit={50}
      data={tenants.entries}
      value={value}
      onChange={onChange}
    />
  );
}

/** The script's name without its folder and ending, as a schedule may be called. */
function nameOf(script: string): string {
  return (script.split("/").at(-1) ?? "").replace(/\.\w+$/, "");
}

function createSchedule(place: Place, order: NewSchedule): Promise<Schedule> {
  return change("POST", `${tenantAddress(place)}/schedules`, "a new thing", { body: order });
}
