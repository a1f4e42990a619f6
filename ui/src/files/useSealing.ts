// Files that are sealed, one after the other; the first that fails ends it, and is told.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { sealFile } from "@/api/changes";
import type { Place } from "@/api/client";
import { counted } from "@/parts/formats";
import { tell, tellProblem } from "@/parts/toasts";

interface Sealable {
  place: Place;
  path: string;
}

export function useSealing(onDone?: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (files: readonly Sealable[]) => {
      let sealed = 0;
      for (const { place, path } of files) {
        try {
          await sealFile(place, path);
          sealed += 1;
        } catch (error) {
          tellProblem(error);
          // Without a master key none of the others can be sealed either.
          break;
        }
      }
      return sealed;
    },
    onSuccess: (sealed) => {
      if (sealed > 0) tell(`${counted(sealed, "file")} sealed.`);
      onDone?.();
      return client.invalidateQueries();
    },
  });
}
