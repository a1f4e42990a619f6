// To a row by its number or its key, to the first one and to the last one.
import { Button, Group, NumberInput, Popover, Stack, Text, TextInput } from "@mantine/core";
import { IconArrowBarToDown } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { countText } from "@/parts/formats";
import { ProblemNote } from "@/parts/ProblemNote";

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
          variant="default"
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
              <Button size="xs" type="submit" disabled={typeof number !== "number"}>
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
                <Button size="xs" type="submit" disabled={key.trim() === ""} loading={finding.isPending}>
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
            <Button size="compact-xs" variant="default" onClick={() => go(0)}>
              First row
            </Button>
            <Button size="compact-xs" variant="default" onClick={() => go(count - 1)}>
              Last row
            </Button>
          </Group>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
