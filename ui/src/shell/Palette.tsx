// Ctrl+K: a part of a tenant's id, a stream, a file, a page, a job's id or a row's key, and be there.
import { Text, TextInput } from "@mantine/core";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { Dialog } from "@/parts/Dialog";
import { type Goal, useGoals } from "./useGoals";

export function Palette(props: { onClose: () => void; environment: string }) {
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const { goals, isLooking } = useGoals(props.environment, text);
  const list = useId();
  const shown = useRef<HTMLDivElement>(null);
  const chosen = Math.min(active, goals.length - 1);

  useEffect(() => {
    shown.current?.querySelector(`[data-place="${chosen}"]`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);

  function go(goal: Goal | undefined) {
    if (!goal) return;
    props.onClose();
    goal.open();
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key === "ArrowDown") setActive((chosen + 1) % Math.max(1, goals.length));
    else if (event.key === "ArrowUp") setActive((chosen - 1 + goals.length) % Math.max(1, goals.length));
    else if (event.key === "Enter") go(goals[chosen]);
    else return;
    event.preventDefault();
  }

  return (
    <Dialog onClose={props.onClose} title="Jump to" size="lg">
      <TextInput
        data-autofocus
        role="combobox"
        aria-label="Tenant, stream, file, job, page or key"
        aria-expanded={goals.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={goals[chosen] && `${list}-${chosen}`}
        placeholder="acme, acme/Invoice, job-4711, 007"
        autoComplete="off"
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={shown} id={list} className="jump-list" role="listbox" aria-label="Found">
        {goals.map((goal, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the combobox
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the combobox
          <div
            key={goal.id}
            id={`${list}-${place}`}
            data-place={place}
            role="option"
            aria-selected={place === chosen}
            className="jump-goal"
            data-active={place === chosen || undefined}
            onClick={() => go(goal)}
          >
            <span className="jump-kind">{goal.kind}</span> {goal.label}
          </div>
        ))}
      </div>
      <Text size="sm" c="dimmed" role="status">
        {isLooking
          ? "Looking for rows"
          : text && goals.length === 0
            ? `Nothing in ${props.environment} has that name or key.`
            : ""}
      </Text>
    </Dialog>
  );
}
