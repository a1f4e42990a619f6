// Which of the service's scripts is run, and the parameters that it declares in its header.
import { Checkbox, NumberInput, Select, Text, TextInput } from "@mantine/core";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { address, get } from "@/api/client";
import type { Script, ScriptParameter } from "@/api/types";
import { ProblemNote } from "@/parts/states";

type Value = string | number | boolean;

/** A script and the parameters that differ from its defaults. */
export interface ScriptChoice {
  script: string | null;
  parameters: Record<string, Value>;
}

export const NO_SCRIPT: ScriptChoice = { script: null, parameters: {} };

const scriptsQuery = queryOptions({
  queryKey: ["scripts"],
  queryFn: async ({ signal }) => (await get<{ scripts: Script[] }>(address`/scripts`, {}, signal)).scripts,
});

interface ScriptFieldsProps {
  choice: ScriptChoice;
  onChange: (choice: ScriptChoice) => void;
  /** Whether the form begins with it. */
  isFirst?: boolean;
}

export function ScriptFields({ choice, onChange, isFirst = false }: ScriptFieldsProps) {
  const scripts = useQuery(scriptsQuery);
  const chosen = scripts.data?.find((one) => one.script === choice.script);
  const only = scripts.data?.length === 1 ? scripts.data[0]?.script : undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the scripts are known
  useEffect(() => {
    if (only !== undefined && choice.script === null) onChange({ script: only, parameters: {} });
  }, [only]);
  if (scripts.isLoadingError) return <ProblemNote error={scripts.error} onRetry={() => scripts.refetch()} />;

  function give(name: string, value: Value | null) {
    const { [name]: _, ...parameters } = choice.parameters;
    onChange({ ...choice, parameters: value === null ? parameters : { ...parameters, [name]: value } });
  }
  return (
    <>
      <Select
        {...(isFirst && { "data-autofocus": true })}
        label="Script"
        description={chosen?.description || "A file in the service's folder of scripts."}
        required
        searchable
        openOnFocus={false}
        nothingFoundMessage="The service has no such script."
        error={chosen?.problem}
        data={scripts.data?.map((one) => one.script) ?? []}
        value={choice.script}
        onChange={(script) => onChange({ script, parameters: {} })}
      />
      {chosen?.parameters?.map((one) => (
        <Field
          key={`${chosen.script} ${one.name}`}
          of={one}
          value={choice.parameters[one.name]}
          onGive={give}
        />
      ))}
      {chosen?.parameters?.length === 0 && <Text c="dimmed">The script declares no parameters.</Text>}
    </>
  );
}

/** Whether a script is only tried. */
export function DryRunField({ isDry, onChange }: { isDry: boolean; onChange: (isDry: boolean) => void }) {
  return (
    <Checkbox
      label="Dry run"
      description="Commits nothing, and shows what the script would change."
      checked={isDry}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}

interface FieldProps {
  of: ScriptParameter;
  value: Value | undefined;
  onGive: (name: string, value: Value | null) => void;
}

function Field({ of, value, onGive }: FieldProps) {
  const { name, type, choices, description } = of;
  const common = { label: name, description, required: of.is_required };
  const shown = value ?? of.default;
  if (type === "boolean")
    return (
      <Checkbox
        label={name}
        description={description}
        checked={shown === true}
        onChange={(event) => onGive(name, event.currentTarget.checked)}
      />
    );
  if (choices.length > 0)
    return (
      <Select
        {...common}
        data={choices.map(String)}
        value={shown === null ? null : String(shown)}
        onChange={(text) => onGive(name, choices.find((one) => String(one) === text) ?? null)}
      />
    );
  if (type === "text")
    return (
      <TextInput
        {...common}
        value={String(shown ?? "")}
        onChange={(event) => onGive(name, event.currentTarget.value)}
      />
    );
  return (
    <NumberInput
      {...common}
      allowDecimal={type === "number"}
      value={typeof shown === "number" ? shown : ""}
      onChange={(number) => onGive(name, typeof number === "number" ? number : null)}
    />
  );
}
