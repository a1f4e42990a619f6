// Which columns of a stream are shown; they are read column by column, so fewer are faster.
import { Button, Checkbox, Group, Popover, ScrollArea, Stack, TextInput } from "@mantine/core";
import { IconColumns3 } from "@tabler/icons-react";
import { useState } from "react";

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
        <Button variant="default" size="compact-xs" leftSection={<IconColumns3 size={13} />}>
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
            <Button size="compact-xs" variant="default" onClick={() => onChange([])}>
              All
            </Button>
            {keyNames.length > 0 && (
              <Button size="compact-xs" variant="default" onClick={() => choose(new Set(keyNames))}>
                Key only
              </Button>
            )}
          </Group>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
