// Gives the focus back to what had it, when what took it goes.
//
// A dialog that is taken out of the page as a whole has no time to do so by itself.
import { useEffect, useState } from "react";

export function useFocusBack(): void {
  const [before] = useState(() => document.activeElement);
  useEffect(
    () => () => {
      // After the page has settled: what is behind a dialog may have been drawn anew with it.
      setTimeout(() => {
        const isLost = document.activeElement === null || document.activeElement === document.body;
        if (isLost && before instanceof HTMLElement && before.isConnected)
          before.focus({ preventScroll: true });
      });
    },
    [before],
  );
}
