// A script of the service's folder, for a tenant, at times that a cron expression says.
import { Autocomplete, Select, Stack, TextInput } from "@mantine/core";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { tenantsQuery } from "@/api/queries";
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
  const [script, setScript] = useState("");
  const [cron, setCron] = useState("0 6 * * *");
  const [zone, setZone] = useState(Intl.DateTimeFormat().resolvedOptions().timeZone);
  const creating = useMutation({
    mutationFn: (of: string) =>
      createSchedule(
        { environment, tenant: of },
        { name: name.trim(), script: script.trim(), cron, zone: zone.trim() },
      ),
    onSuccess: onCreated,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (tenant !== null) creating.mutate(tenant);
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
          <TextInput
            label="Script"
            description="A file in the service's folder of scripts."
            required
            placeholder="etl.py"
            value={script}
            onChange={(event) => setScript(event.currentTarget.value)}
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
          <FormFooter sending={creating} verb="Create" onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}
