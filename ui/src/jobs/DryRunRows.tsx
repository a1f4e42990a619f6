// What a dry run would change, row by row and line by line.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Place } from "@/api/client";
import { dryRunChangesQuery } from "@/api/queries";
import { ChangedRows } from "@/history/ChangedRows";
import { Placeholder } from "@/parts/states";

export function DryRunRows({ place, jobId }: { place: Place; jobId: string }) {
  const found = useQuery(dryRunChangesQuery(place, jobId));
  if (!found.data) return <Placeholder query={found} lines={3} />;
  const { streams, files } = found.data;
  const texts = Object.entries(files).filter(([, text]) => text);
  if (streams.length + texts.length === 0) return null;
  return (
    <div className="dry-run-rows">
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
