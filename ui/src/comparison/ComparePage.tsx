// Two tenants side by side: streams with their rows and columns, and files that differ.
import { Autocomplete, Button, Select, Text, Title } from "@mantine/core";
import { useQueries, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { readFile } from "@/api/changes";
import { type Place, tenantKey } from "@/api/client";
import {
  ALL_FILES_MAX,
  allFilesQuery,
  environmentsQuery,
  overviewQuery,
  streamQuery,
  tenantsQuery,
  useList,
} from "@/api/queries";
import type { StreamOverview } from "@/api/types";
import { TwoTexts } from "@/files/TwoTexts";
import { PageHead } from "@/navigation/PageHead";
import { Dialog } from "@/parts/dialogs";
import { bytesText, counted, countText } from "@/parts/formats";
import { PlainTable } from "@/parts/PlainTable";
import { EmptyNote, LateSkeleton, ProblemNote } from "@/parts/states";
import type { Column } from "@/parts/VirtualGrid";
import { useEnvironment } from "@/session/session";
import { columnDifferences, type FilePair, filePairs, type StreamPair, streamPairs } from "./comparison";
import "./comparison.css";

export function ComparePage() {
  const search = useSearch({ from: "/signed-in/compare" });
  const navigate = useNavigate();
  const environment = useEnvironment();
  const environments = useQuery(environmentsQuery);
  const other = search.other ?? environment;
  const go = (changes: typeof search) =>
    void navigate({ to: "/compare", search: (before) => ({ ...before, env: environment, ...changes }) });
  return (
    <div className="page">
      <PageHead title="Compare tenants" />
      <div className="compared">
        <TenantField
          key={`left ${search.left}`}
          label="Tenant"
          environment={environment}
          value={search.left}
          onChoose={(left) => go({ left })}
        />
        <TenantField
          key={`right ${search.right} ${other}`}
          label="Compare with"
          environment={other}
          value={search.right}
          onChoose={(right) => go({ right })}
        />
        {(environments.data?.length ?? 0) > 1 && (
          <Select
            size="xs"
            label="of the environment"
            data={environments.data ?? []}
            value={other}
            allowDeselect={false}
            onChange={(next) => go({ other: next ?? undefined })}
          />
        )}
      </div>
      {search.left && search.right ? (
        <Comparison
          left={{ environment, tenant: search.left }}
          right={{ environment: other, tenant: search.right }}
        />
      ) : (
        <EmptyNote title="Choose two tenants.">
          Compare the newest versions of their streams, columns and files.
        </EmptyNote>
      )}
    </div>
  );
}

function Comparison({ left, right }: { left: Place; right: Place }) {
  const [one, other] = [useQuery(overviewQuery(left)), useQuery(overviewQuery(right))];
  const failed = one.isError ? one : other.isError ? other : undefined;
  if (failed) return <ProblemNote error={failed.error} onRetry={() => void failed.refetch()} />;
  if (!one.data || !other.data) return <LateSkeleton lines={10} />;
  return (
    <div className="comparison">
      <Streams left={left} right={right} pairs={streamPairs(one.data, other.data)} />
      <Files left={left} right={right} />
    </div>
  );
}

function Streams({ left, right, pairs }: { left: Place; right: Place; pairs: StreamPair[] }) {
  const shared = pairs.filter((pair) => pair.left && pair.right).map((pair) => pair.name);
  const details = (place: Place) => ({ queries: shared.map((name) => streamQuery(place, name)) });
  const [lefts, rights] = [useQueries(details(left)), useQueries(details(right))];
  const names = namesOf(left, right);
  function columns(name: string): string {
    const at = shared.indexOf(name);
    const [one, other] = [lefts[at]?.data, rights[at]?.data];
    if (at < 0) return "";
    if (!one || !other) return lefts[at]?.isError || rights[at]?.isError ? "could not be read" : "…";
    const told = columnDifferences(one, other, names);
    return told.length > 0 ? told.join(", ") : "the same";
  }
  const rows = (stream: StreamOverview | undefined) =>
    stream ? (
      <span title={bytesText(stream.size_bytes)}>{counted(stream.rows, "row")}</span>
    ) : (
      <span className="mark-gone">missing</span>
    );
  const table: Column<StreamPair>[] = [
    { id: "stream", header: "Stream", cell: (pair) => pair.name },
    { id: "left", header: names[0], align: "right", cell: (pair) => rows(pair.left) },
    { id: "right", header: names[1], align: "right", cell: (pair) => rows(pair.right) },
    { id: "columns", header: "Columns", cell: (pair) => columns(pair.name) },
  ];
  return (
    <section aria-label="Streams">
      <Title order={2} size="h5">
        Streams
      </Title>
      {pairs.length === 0 ? (
        <Text>Neither tenant has a stream.</Text>
      ) : (
        <PlainTable label="Streams of both" columns={table} rows={pairs} keyOf={(pair) => pair.name} />
      )}
    </section>
  );
}

function Files({ left, right }: { left: Place; right: Place }) {
  const [one, other] = [useQuery(allFilesQuery(left)), useQuery(allFilesQuery(right))];
  const [open, setOpen] = useState<string>();
  const names = namesOf(left, right);
  const failed = one.isError ? one : other.isError ? other : undefined;
  if (failed) return <ProblemNote error={failed.error} onRetry={() => void failed.refetch()} />;
  if (!one.data || !other.data) return <LateSkeleton lines={6} />;
  const [pairs, same] = filePairs(one.data.files, other.data.files);
  const isWhole = one.data.isWhole && other.data.isWhole;
  const table: Column<FilePair>[] = [
    { id: "path", header: "File", cell: ({ path }) => path },
    { id: "fact", header: "Difference", cell: ({ kind }) => fact(kind, names) },
    {
      id: "actions",
      header: "Actions",
      align: "right",
      cell: ({ path, kind }) =>
        kind === "differs" && (
          <Button size="compact-xs" aria-label={`Compare ${path}`} onClick={() => setOpen(path)}>
            Compare
          </Button>
        ),
    },
  ];
  return (
    <section aria-label="Files">
      <Title order={2} size="h5">
        Files
      </Title>
      <Text role="status">
        {`${countText(same)} ${same === 1 ? "is" : "are"} the same, ${countText(pairs.length)} differ.`}
        {!isWhole && ` Only the first ${countText(ALL_FILES_MAX)} files of each tenant are compared.`}
      </Text>
      {pairs.length > 0 && (
        <PlainTable label="Files that differ" columns={table} rows={pairs} keyOf={({ path }) => path} />
      )}
      {open !== undefined && (
        <Dialog
          onClose={() => setOpen(undefined)}
          title={`${open} of ${names[0]} and ${names[1]}`}
          size="90%"
        >
          <div className="editor editor-tall">
            <TwoTexts
              path={open}
              queryKey={[...tenantKey(left), "beside", ...tenantKey(right), open]}
              read={() => Promise.all([readFile(left, open), readFile(right, open)])}
            />
          </div>
        </Dialog>
      )}
    </section>
  );
}

function fact(kind: FilePair["kind"], [left, right]: [string, string]): string {
  if (kind === "sealed") return "sealed: not compared";
  return kind === "differs" ? "differs" : `in ${kind === "left" ? left : right} only`;
}

/** What each is called: its id, with the environment where that tells them apart. */
function namesOf(left: Place, right: Place): [string, string] {
  const isElsewhere = left.environment !== right.environment;
  const name = (place: Place) => (isElsewhere ? `${place.environment}/${place.tenant}` : place.tenant);
  return [name(left), name(right)];
}

const SHOWN_MAX = 20;

/** A tenant by a part of its id. */
function TenantField(props: {
  label: string;
  environment: string;
  value: string | undefined;
  onChoose: (tenant: string) => void;
}) {
  const [text, setText] = useState(props.value ?? "");
  const of = tenantsQuery(props.environment);
  const { entries: ids } = useList(of, (page) => page.tenants, { isWhole: true });
  return (
    <Autocomplete
      size="xs"
      label={props.label}
      placeholder="Part of the id"
      data={ids}
      limit={SHOWN_MAX}
      value={text}
      onChange={setText}
      onOptionSubmit={props.onChoose}
      onKeyDown={(event) => {
        if (event.key === "Enter" && ids.includes(text)) props.onChoose(text);
      }}
    />
  );
}
