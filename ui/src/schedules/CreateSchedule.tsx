// A script of the service's folder, for a tenant, at times that a cron expression says.
import { Autocomplete, Select, Stack, TextInput } from "@mantine/core";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { tenantsQuery } from "@/api/queries";
import { NO_SCRIPT, ScriptFields } from "@/jobs/ScriptFields";
import { Dialog } from "@/parts/Dialog";
import { FormFooter } from "@/parts/FormFooter";
import { createSchedule } from "./schedules";

const TIMES = ["0 * * * *", "0 6 * * *", "0 6 * * 1-5", "0 0 1 * *"];

interface CreateScheduleProps {
  environment: string;
  onClose: () => void;
  onCreated: () => void;
}

export function CreateSchedule({ environment, onClose, onCreated }: CreateScheduleProps) {
  const tenants = useInfiniteQuery(tenantsQuery(environment));
  const [tenant, setTenant] = useState<string | null>(null);
  const [name, setName] = useState("");
  const [choice, setChoice] = useState(NO_SCRIPT);
  const [cron, setCron] = useState("0 6 * * *");
  const [zone, setZone] = useState(Intl.DateTimeFormat().resolvedOptions().timeZone);
  const creating = useMutation({
    mutationFn: (of: { tenant: string; script: string }) =>
      createSchedule(
        { environment, tenant: of.tenant },
        {
          name: name.trim(),
          script: of.script,
          parameters: choice.parameters,
          cron,
          zone: zone.trim(),
        },
      ),
    onSuccess: onCreated,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    const { script } = choice;
    if (tenant !== null && script !== null && !creating.isPending) creating.mutate({ tenant, script });
  }
  return (
    <Dialog onClose={onClose} title="Create schedule">
      <form onSubmit={submit}>
        <Stack>
          <Select
            data-autofocus
            label="Tenant"
            required
            searchable
            openOnFocus={false}
            limit={50}
            data={tenants.data?.pages.flatMap((page) => page.tenants) ?? []}
            value={tenant}
            onChange={setTenant}
          />
          <TextInput
            label="Name"
            required
            placeholder="nightly"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <ScriptFields choice={choice} onChange={setChoice} />
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
          <FormFooter sending={creating} verb="Create" onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}
