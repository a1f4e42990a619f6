// What a dry run or a held job would change, row by row and line by line, and which checks keep it from that.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Place } from "@/api/client";
import { dryRunChangesQuery } from "@/api/queries";
import { ChangedRows } from "@/history/ChangedRows";
import { Placeholder } from "@/parts/states";

export function DryRunRows({ place, jobId }: { place: Place; jobId: string }) {
  const found = useQuery(dryRunChangesQuery(place, jobId));
  if (!found.data) return <Placeholder query={found} lines={3} />;
  const { streams, files, failed_checks: failed = [] } = found.data;
  const texts = Object.entries(files).filter(([, text]) => text);
  if (streams.length + texts.length + failed.length === 0) return null;
  return (
    <div className="dry-run-rows">
      {failed.map(({ stream, check, reason, rows }) => (
        <section key={`${stream} ${check}`} aria-label={`Failed check of ${stream}`}>
          <h2>
            {stream}: <code>{check}</code>
          </h2>
          <Text c="var(--mantine-color-error)">Failed: {reason}</Text>
          {rows.length > 0 && <pre className="mono">{rows.map((row) => JSON.stringify(row)).join("\n")}</pre>}
        </section>
      ))}
      {streams.map(({ stream, key, rows, problem }) => (
        <section key={stream} aria-label={`Rows of ${stream}`}>
          <h2>{stream}</h2>
          {problem ? (
            <Text>{problem}</Text>
          ) : (
            <ChangedRows isShort label={`Rows of ${stream} that would change`} rows={rows} keyNames={key} />
          )}
        </section>
      ))}
      {texts.map(([path, text]) => (
        <section key={path} aria-label={`Lines of ${path}`}>
          <h2>{path}</h2>
          <pre className="mono">{text}</pre>
        </section>
      ))}
    </div>
  );
}
