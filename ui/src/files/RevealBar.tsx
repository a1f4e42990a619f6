// Above what was revealed: for how long it is still shown, and the way to hide it at once.
import { Button } from "@mantine/core";
import { IconLockOpen } from "@tabler/icons-react";
import type { Reveal } from "./useReveal";

export function RevealBar({ reveal }: { reveal: Reveal }) {
  return (
    <div className="reveal-bar">
      <IconLockOpen size={15} aria-hidden />
      <span>
        Revealed; the audit has an entry.{" "}
        {reveal.secondsLeft === null
          ? "Shown until you save or discard your changes."
          : `Hidden again in ${reveal.secondsLeft} s.`}
      </span>
      <Button size="compact-xs" variant="default" onClick={reveal.hide}>
        Hide now
      </Button>
    </div>
  );
}
