// To which environments and tenants a key or a person is limited.
import { TagsInput } from "@mantine/core";

export interface Bounds {
  /** Null: all. */
  environments: string[] | null;
  tenants: string[] | null;
}

interface BoundsFieldsProps {
  value: Bounds;
  onChange: (bounds: Bounds) => void;
}

export function BoundsFields({ value, onChange }: BoundsFieldsProps) {
  return (
    <>
      <TagsInput
        label="Environments"
        description="If empty: all."
        value={value.environments ?? []}
        onChange={(names) => onChange({ ...value, environments: someOrAll(names) })}
      />
      <TagsInput
        label="Tenants"
        description="If empty: all."
        value={value.tenants ?? []}
        onChange={(names) => onChange({ ...value, tenants: someOrAll(names) })}
      />
    </>
  );
}

function someOrAll(names: string[]): string[] | null {
  return names.length > 0 ? names : null;
}
