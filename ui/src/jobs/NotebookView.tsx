// A job's notebook as it was executed: its cells as text, and the pictures that they drew.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Place } from "@/api/client";
import { notebookQuery } from "@/api/queries";
import { EmptyNote, LateSkeleton, ProblemNote } from "@/parts/states";
import { type NotebookOutput, notebookCells } from "./notebook";
import "./jobs.css";

export default function NotebookView({ place, jobId }: { place: Place; jobId: string }) {
  const notebook = useQuery(notebookQuery(place, jobId));
  if (notebook.isPending) return <LateSkeleton />;
  if (notebook.isLoadingError)
    return <ProblemNote error={notebook.error} onRetry={() => notebook.refetch()} />;
  const cells = notebookCells(notebook.data);
  if (!cells) return <EmptyNote title="This notebook cannot be shown.">Download it instead.</EmptyNote>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it must scroll by keyboard
    <section className="notebook" aria-label="Executed notebook" tabIndex={0}>
      {cells.map((cell, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a notebook that was executed does not change
        <article key={index} className="notebook-cell" data-kind={cell.kind}>
          {cell.kind === "code" && <span className="notebook-count">[{cell.count ?? " "}]</span>}
          <pre className="notebook-source">{cell.source}</pre>
          {cell.outputs.map((output, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: as above
            <Output key={place} output={output} />
          ))}
        </article>
      ))}
      {cells.length === 0 && (
        <Text size="md" c="dimmed">
          It has no cells.
        </Text>
      )}
    </section>
  );
}

function Output({ output }: { output: NotebookOutput }) {
  if (output.kind === "picture")
    return <img className="notebook-output" src={output.source} alt={output.text || "Output of the cell"} />;
  return (
    <pre className="notebook-output" data-kind={output.kind}>
      {output.text}
    </pre>
  );
}
