// Where the keyboard is: nowhere is what a page must not leave it at.
import { useEffect } from "react";

/** Whether what had the focus is gone, so that nobody has it but the page, or what holds it until there is more. */
export function isFocusLost(): boolean {
  const holder = document.activeElement;
  return holder === null || holder === document.body || holder.hasAttribute("data-focus-rest");
}

/** Gives the focus to what has `data-focus-rest` whenever what had it goes; the next part takes it from there. */
export function useFocusRest(): void {
  useEffect(() => {
    const watch = new MutationObserver(() => {
      if (document.activeElement === document.body)
        document.querySelector<HTMLElement>("[data-focus-rest]")?.focus({ preventScroll: true });
    });
    watch.observe(document.body, { childList: true, subtree: true });
    return () => watch.disconnect();
  }, []);
}
