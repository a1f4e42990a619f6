// The conditions that rows must meet, as chips; a new one has the comparisons of its column's type.
import { Button, Group, Pill, Popover, Select, Stack, TextInput } from "@mantine/core";
import { IconFilter } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import {
  type Comparison,
  comparisonsOf,
  conditionLabel,
  conditionText,
  exampleOf,
  kindOf,
} from "./conditions";

interface ConditionsProps {
  columns: readonly string[];
  types: ReadonlyMap<string, string>;
  where: readonly string[];
  onChange: (where: string[]) => void;
}

export function Conditions({ columns, types, where, onChange }: ConditionsProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {where.map((condition) => (
        <Pill
          key={condition}
          withRemoveButton
          removeButtonProps={{
            tabIndex: 0,
            "aria-hidden": false,
            "aria-label": `Remove the condition ${conditionLabel(condition)}`,
          }}
          onRemove={() => onChange(where.filter((item) => item !== condition))}
        >
          {conditionLabel(condition)}
        </Pill>
      ))}
      <Popover opened={isOpen} onChange={setOpen} position="bottom-start" trapFocus returnFocus shadow="md">
        <Popover.Target>
          <Button
            variant="default"
            size="compact-xs"
            leftSection={<IconFilter size={13} />}
            disabled={columns.length === 0}
            onClick={() => setOpen(!isOpen)}
          >
            Add a filter
          </Button>
        </Popover.Target>
        <Popover.Dropdown>
          <NewCondition
            columns={columns}
            types={types}
            onAdd={(condition) => {
              if (!where.includes(condition)) onChange([...where, condition]);
              setOpen(false);
            }}
          />
        </Popover.Dropdown>
      </Popover>
    </>
  );
}

interface NewConditionProps {
  columns: readonly string[];
  types: ReadonlyMap<string, string>;
  onAdd: (condition: string) => void;
}

function NewCondition({ columns, types, onAdd }: NewConditionProps) {
  const [column, setColumn] = useState<string | null>(null);
  const [comparison, setComparison] = useState<Comparison>("=");
  const [value, setValue] = useState("");
  const type = column === null ? undefined : types.get(column);
  const choices = comparisonsOf(type);
  const used = choices.some((one) => one.value === comparison)
    ? comparison
    : (choices[0]?.value ?? "is null");
  const needsValue = !used.startsWith("is");

  function add(event: FormEvent) {
    event.preventDefault();
    if (column) onAdd(conditionText(column, used, value, type));
  }
  const own = { comboboxProps: { withinPortal: false } };
  return (
    <form onSubmit={add}>
      <Stack gap="xs" w={240}>
        <Select
          {...own}
          size="xs"
          label="Column"
          searchable
          data-autofocus
          data={[...columns]}
          value={column}
          onChange={setColumn}
        />
        <Select
          {...own}
          size="xs"
          label="Comparison"
          data={choices}
          value={used}
          onChange={(next) => setComparison(next as Comparison)}
          allowDeselect={false}
        />
        {needsValue &&
          (kindOf(type) === "truth" ? (
            <Select
              {...own}
              size="xs"
              label="Value"
              data={["true", "false"]}
              value={value || null}
              onChange={(next) => setValue(next ?? "")}
            />
          ) : (
            <TextInput
              size="xs"
              label="Value"
              placeholder={exampleOf(type)}
              inputMode={kindOf(type) === "number" ? "decimal" : "text"}
              value={value}
              onChange={(event) => setValue(event.currentTarget.value)}
            />
          ))}
        <Group justify="flex-end">
          <Button size="compact-sm" type="submit" disabled={!column}>
            Filter
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
