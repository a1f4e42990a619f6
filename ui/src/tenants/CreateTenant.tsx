// A new tenant by its id.
import { Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { createTenant } from "@/api/changes";
import { ProblemNote } from "@/parts/ProblemNote";

interface CreateTenantProps {
  environment: string;
  isOpen: boolean;
  onClose: () => void;
  onCreated: (tenant: string) => void;
}

export function CreateTenant({ environment, isOpen, onClose, onCreated }: CreateTenantProps) {
  const [tenant, setTenant] = useState("");
  const client = useQueryClient();
  const creating = useMutation({
    mutationFn: () => createTenant(environment, tenant.trim()),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["tenants"] });
      await client.invalidateQueries({ queryKey: ["environments"] });
      onClose();
      onCreated(tenant.trim());
      setTenant("");
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    creating.mutate();
  }
  return (
    <Modal opened={isOpen} onClose={onClose} title={`Create a tenant in ${environment}`}>
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            data-autofocus
            required
            label="Id"
            description="As your own system calls the customer."
            value={tenant}
            onChange={(event) => setTenant(event.currentTarget.value)}
          />
          {creating.isError && <ProblemNote error={creating.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={creating.isPending}>
              Create
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
