// What was revealed of a sealed file is hidden again after half a minute, but not while something is unsaved.
import { useCallback, useEffect, useState } from "react";

const SHOWN_SECONDS = 30;

export interface Reveal {
  isShown: boolean;
  /** Until it is hidden; null while something that was typed keeps it open. */
  secondsLeft: number | null;
  show: () => void;
  hide: () => void;
  keep: (isChanged: boolean) => void;
}

export function useReveal(path: string): Reveal {
  const [secondsLeft, setSecondsLeft] = useState(0);
  const [isKept, setKept] = useState(false);
  const isShown = secondsLeft > 0;

  // biome-ignore lint/correctness/useExhaustiveDependencies: another file is not revealed
  useEffect(() => {
    setSecondsLeft(0);
    setKept(false);
  }, [path]);
  useEffect(() => {
    if (!isShown || isKept) return;
    const timer = setInterval(() => setSecondsLeft((left) => left - 1), 1000);
    return () => clearInterval(timer);
  }, [isShown, isKept]);

  return {
    isShown,
    secondsLeft: isKept ? null : secondsLeft,
    show: useCallback(() => setSecondsLeft(SHOWN_SECONDS), []),
    hide: useCallback(() => {
      setSecondsLeft(0);
      setKept(false);
    }, []),
    // Who saved or took back what was typed has the whole time again.
    keep: useCallback((isChanged: boolean) => {
      setKept(isChanged);
      setSecondsLeft((left) => (left > 0 ? SHOWN_SECONDS : left));
    }, []),
  };
}
