// Gives the focus back to what had it, when what took it goes.
//
// A dialog that is taken out of the page as a whole has no time to do so by itself.
import { useEffect, useState } from "react";
import { isFocusLost } from "./focus";

export function useFocusBack(): void {
  const [before] = useState(() => openerOf(document.activeElement));
  useEffect(
    () => () => {
      // After the page has settled: what is behind a dialog may have been drawn anew with it.
      setTimeout(() => {
        if (isFocusLost() && before instanceof HTMLElement && before.isConnected)
          before.focus({ preventScroll: true });
      });
    },
    [before],
  );
}

/** What to go back to: an entry of a menu is gone with the menu, and what opened that is not. */
function openerOf(element: Element | null): Element | null {
  const opener = element?.closest('[role="menu"]')?.getAttribute("aria-labelledby");
  return opener ? document.getElementById(opener) : element;
}
