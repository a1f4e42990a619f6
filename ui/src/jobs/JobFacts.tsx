// What a job is and what came of it: script, parameters, who submitted it, rows that it changed.
import { Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { Job } from "@/api/types";
import { countText, durationText } from "@/parts/formats";
import { Changes, Moment } from "@/parts/values";
import { errorOf, otherEffectsOf, scriptText, secondsOf, streamsOf, wouldChange } from "./job-facts";
import "./jobs.css";

export function JobFacts({ job }: { job: Job }) {
  const parameters = Object.entries(job.parameters);
  const seconds = secondsOf(job);
  const streams = streamsOf(job);
  const error = errorOf(job);
  const { columns, files } = otherEffectsOf(job);
  const isDone = wouldChange(job);
  const until = job.outcome?.held_until;
  const remarks = Array.isArray(job.outcome?.remarks) ? job.outcome.remarks : [];
  return (
    <>
      <dl className="job-facts" aria-label="About the job">
        <Fact name="Script">{scriptText(job)}</Fact>
        {parameters.length > 0 && (
          <Fact name="Parameters">
            <span className="mono">{parameters.map(([name, value]) => `${name}=${value}`).join(" ")}</span>
          </Fact>
        )}
        <Fact name="Submitted">
          <Moment at={job.created} isDated /> {job.submitted_by && `by ${job.submitted_by}`}
          {job.schedule && `, schedule ${job.schedule}`}
        </Fact>
        {job.group && (
          <Fact name="Group">
            <Link to="/jobs" search={{ env: job.environment, group: job.group }} className="mono">
              {job.group}
            </Link>
          </Fact>
        )}
        {job.message && <Fact name="Message">{job.message}</Fact>}
        {job.attempts > 0 && (
          <Fact name="Attempts">
            {countText(job.attempts)} of {countText(job.attempts_max)}
            {seconds !== undefined && `, the last took ${durationText(seconds)}`}
          </Fact>
        )}
        {streams.length > 0 && (
          <Fact name={isDone ? "Would change" : "Rows"}>
            {streams.map(([stream, counts]) => (
              <span key={stream} className="job-stream">
                {stream} <Changes counts={counts} />
              </span>
            ))}
          </Fact>
        )}
        {columns.length > 0 && <Fact name="Columns">{columns.join(", ")}</Fact>}
        {files.length > 0 && <Fact name="Files">{files.join(", ")}</Fact>}
        {remarks.length > 0 && <Fact name="Remarks">{remarks.join(" ")}</Fact>}
        {typeof until === "string" && (
          <Fact name="Held until">
            <Moment at={until} isDated />
          </Fact>
        )}
        {isDone && (
          <Fact name="Result">
            {streams.length + columns.length + files.length === 0
              ? "Nothing would change."
              : "Nothing was committed."}
          </Fact>
        )}
      </dl>
      {error?.problem && (
        <Text c="var(--mantine-color-error)">
          {[error.problem, error.cause, error.remedy].filter(Boolean).join(" ")}
        </Text>
      )}
    </>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
