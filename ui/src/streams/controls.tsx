// What stands above a stream's rows: conditions as chips, the columns that are shown, the way to a row.
import {
  Button,
  Checkbox,
  Group,
  NumberInput,
  Pill,
  Popover,
  ScrollArea,
  Select,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { IconArrowBarToDown, IconColumns3, IconFilter } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { countText } from "@/parts/formats";
import { ProblemNote } from "@/parts/states";
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
          <Button variant="filled" type="submit" disabled={!column}>
            Filter
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

interface ColumnMenuProps {
  all: readonly string[];
  shown: readonly string[];
  keyNames: readonly string[];
  /** An empty list is all of them. */
  onChange: (columns: string[]) => void;
}

const SEARCHED_FROM = 8;

export function ColumnMenu({ all, shown, keyNames, onChange }: ColumnMenuProps) {
  const [text, setText] = useState("");
  const chosen = new Set(shown);
  const listed = all.filter((name) => name.toLowerCase().includes(text.toLowerCase()));

  function choose(names: ReadonlySet<string>) {
    const next = all.filter((name) => names.has(name));
    if (next.length > 0) onChange(next.length === all.length ? [] : next);
  }
  function toggle(name: string) {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    choose(next);
  }
  return (
    <Popover position="bottom-end" trapFocus returnFocus shadow="md">
      <Popover.Target>
        <Button size="compact-xs" leftSection={<IconColumns3 size={13} />}>
          {chosen.size === all.length ? "Columns" : `${chosen.size} of ${all.length} columns`}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs" w={230}>
          {all.length > SEARCHED_FROM && (
            <TextInput
              size="xs"
              aria-label="Search columns"
              placeholder="Search"
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
            />
          )}
          <ScrollArea.Autosize mah={260} offsetScrollbars>
            <Stack gap={6} component="fieldset" className="plain-set" aria-label="Columns that are shown">
              {listed.map((name) => (
                <Checkbox
                  key={name}
                  size="xs"
                  label={keyNames.includes(name) ? `${name} (key)` : name}
                  checked={chosen.has(name)}
                  disabled={chosen.size === 1 && chosen.has(name)}
                  onChange={() => toggle(name)}
                />
              ))}
            </Stack>
          </ScrollArea.Autosize>
          <Group gap="xs">
            <Button size="compact-xs" onClick={() => onChange([])}>
              All
            </Button>
            {keyNames.length > 0 && (
              <Button size="compact-xs" onClick={() => choose(new Set(keyNames))}>
                Key only
              </Button>
            )}
          </Group>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

interface GoToProps {
  /** How many rows are listed. */
  count: number;
  /** The column by which a row is named; undefined: rows have no key. */
  keyName: string | undefined;
  onIndex: (index: number) => void;
  /** Where a key lies among the rows, and whether a row has it. */
  find: (key: string) => Promise<{ index: number; isThere: boolean }>;
}

export function GoTo({ count, keyName, onIndex, find }: GoToProps) {
  const [isOpen, setOpen] = useState(false);
  const [number, setNumber] = useState<number | string>("");
  const [key, setKey] = useState("");
  const finding = useMutation({
    mutationFn: find,
    onSuccess: ({ index, isThere }) => {
      onIndex(index);
      if (isThere) setOpen(false);
    },
  });
  const isMissing = finding.isSuccess && !finding.data.isThere && finding.variables === key.trim();

  function go(index: number) {
    setOpen(false);
    onIndex(index);
  }
  function onNumber(event: FormEvent) {
    event.preventDefault();
    if (typeof number === "number") go(number - 1);
  }
  function onKey(event: FormEvent) {
    event.preventDefault();
    if (key.trim() !== "") finding.mutate(key.trim());
  }
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-end" trapFocus shadow="md">
      <Popover.Target>
        <Button
          size="compact-xs"
          leftSection={<IconArrowBarToDown size={13} />}
          disabled={count === 0}
          onClick={() => setOpen(!isOpen)}
        >
          Go to
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs" w={250}>
          <form onSubmit={onNumber}>
            <Group gap={6} align="flex-end" wrap="nowrap">
              <NumberInput
                size="xs"
                flex={1}
                label={`Row, 1 to ${countText(count)}`}
                min={1}
                max={count}
                clampBehavior="strict"
                allowDecimal={false}
                thousandSeparator=","
                hideControls
                value={number}
                onChange={setNumber}
              />
              <Button variant="filled" size="xs" type="submit" disabled={typeof number !== "number"}>
                Go
              </Button>
            </Group>
          </form>
          {keyName !== undefined && (
            <form onSubmit={onKey}>
              <Group gap={6} align="flex-end" wrap="nowrap">
                <TextInput
                  size="xs"
                  flex={1}
                  label={keyName}
                  value={key}
                  onChange={(event) => setKey(event.currentTarget.value)}
                />
                <Button
                  variant="filled"
                  size="xs"
                  type="submit"
                  disabled={key.trim() === ""}
                  loading={finding.isPending}
                >
                  Find
                </Button>
              </Group>
              {isMissing && (
                <Text size="xs" mt={4} role="status">
                  No row has this key; the next row is marked.
                </Text>
              )}
              {finding.isError && <ProblemNote error={finding.error} />}
            </form>
          )}
          <Group gap={6}>
            <Button size="compact-xs" onClick={() => go(0)}>
              First row
            </Button>
            <Button size="compact-xs" onClick={() => go(count - 1)}>
              Last row
            </Button>
          </Group>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
