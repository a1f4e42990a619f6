// Ctrl+K: a part of a tenant's id, a stream, a file, a page, a job's id, a row's key or a text in it, and be there.
import { Text, TextInput } from "@mantine/core";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { Dialog } from "@/parts/Dialog";
import { countText } from "@/parts/formats";
import type { Search } from "./useFoundRows";
import { type Goal, useGoals } from "./useGoals";

export function Palette(props: { onClose: () => void; environment: string }) {
  const [text, setText] = useState("");
  const [active, setActive] = useState<string>();
  const { goals, search } = useGoals(props.environment, text);
  const list = useId();
  const shown = useRef<HTMLDivElement>(null);
  // By its id: rows that come in meanwhile move what is below them.
  const chosen = Math.max(
    0,
    goals.findIndex((goal) => goal.id === active),
  );

  useEffect(() => {
    shown.current?.querySelector(`[data-place="${chosen}"]`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);

  function go(goal: Goal | undefined) {
    if (!goal) return;
    props.onClose();
    goal.open();
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key === "ArrowDown") setActive(goals[(chosen + 1) % goals.length]?.id);
    else if (event.key === "ArrowUp") setActive(goals[(chosen - 1 + goals.length) % goals.length]?.id);
    else if (event.key === "Enter") go(goals[chosen]);
    else return;
    event.preventDefault();
  }

  return (
    <Dialog onClose={props.onClose} title="Search" size="lg">
      <TextInput
        data-autofocus
        role="combobox"
        aria-label="Tenant, stream, file, job, page, key or text"
        aria-expanded={goals.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={goals[chosen] && `${list}-${chosen}`}
        placeholder="acme, acme/Invoice, job-4711, 007"
        autoComplete="off"
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setActive(undefined);
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
        {statusText(props.environment, text, goals.length, search)}
      </Text>
    </Dialog>
  );
}

function statusText(environment: string, text: string, count: number, search: Search): string {
  const tenants = search.progress?.tenants ?? 0;
  const searched = `${countText(tenants)} ${tenants === 1 ? "tenant" : "tenants"} searched`;
  if (search.state === "looking") return tenants ? `Searching rows: ${searched}` : "Searching rows";
  if (search.state === "failed") return "The row search failed. Keep typing to try again.";
  if (text && count === 0) return `Nothing in ${environment} matches.`;
  if (search.progress?.unreadable) return `${searched}, ${search.progress.unreadable} of them damaged.`;
  if (search.progress && !search.progress.is_whole)
    return `${searched}; there may be more rows. Enter more characters to narrow the search.`;
  return "";
}
