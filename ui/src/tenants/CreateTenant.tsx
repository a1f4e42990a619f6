// A new tenant by its id.
import { useQueryClient } from "@tanstack/react-query";
import { createTenant } from "@/api/changes";
import { NameDialog } from "@/parts/NameDialog";

interface CreateTenantProps {
  environment: string;
  onClose: () => void;
  onCreated: (tenant: string) => void;
}

export function CreateTenant({ environment, onClose, onCreated }: CreateTenantProps) {
  const client = useQueryClient();
  return (
    <NameDialog
      title={`Create a tenant in ${environment}`}
      label="Id"
      description="The customer's id in your system."
      action="Create"
      onSubmit={async (tenant) => {
        await createTenant(environment, tenant);
        await client.invalidateQueries({ queryKey: ["tenants"] });
        await client.invalidateQueries({ queryKey: ["environments"] });
        onCreated(tenant);
      }}
      onClose={onClose}
    />
  );
}
