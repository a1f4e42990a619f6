// A file that an upload would replace: whose it is, since when, and how the two differ.
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { readFile } from "@/api/changes";
import { tenantKey } from "@/api/client";
import { decoded } from "@/api/file-text";
import { fileHistoryQuery } from "@/api/queries";
import { TwoTexts } from "@/files/TwoTexts";
import { makerText } from "@/history/versions";
import { Dialog } from "@/parts/dialogs";
import { bytesText } from "@/parts/formats";
import { Moment } from "@/parts/values";
import type { Upload } from "@/uploads/queue";

const COMPARED_BYTES_MAX = 1024 ** 2;

/** Who wrote the file that is there, when, and how it differs from the one that is uploaded. */
export function ExistingFile({ upload: { place, path, file, there } }: { upload: Upload }) {
  const [isComparing, setComparing] = useState(false);
  const history = useQuery({ ...fileHistoryQuery(place, path), staleTime: 0, enabled: there !== null });
  if (there === null)
    return <span className="upload-advice">It was deleted meanwhile; Replace writes it again.</span>;
  const version = Number.parseInt(there.slice(1), 10);
  const found = history.data?.revisions.find((one) => one.version === version);
  if (!found) return null;
  const isText = !found.sealed && Math.max(found.size, file.size) <= COMPARED_BYTES_MAX;
  return (
    <span className="upload-advice">
      There: {bytesText(found.size)}, by {makerText({ job_id: found.job_id, who: found.author })},{" "}
      <Moment at={found.modified} isDated />. Yours: {bytesText(file.size)}.{" "}
      {isText && (
        <Button size="compact-xs" variant="subtle" onClick={() => setComparing(true)}>
          Compare
        </Button>
      )}
      {isComparing && (
        <Dialog onClose={() => setComparing(false)} title={`${path}: there and yours`} size="90%">
          <div className="editor editor-tall">
            <TwoTexts
              path={path}
              queryKey={[...tenantKey(place), "upload-diff", path, there, file.lastModified, file.size]}
              read={async () => [
                await readFile(place, path, version),
                decoded(new Uint8Array(await file.arrayBuffer()), true),
              ]}
            />
          </div>
        </Dialog>
      )}
    </span>
  );
}
