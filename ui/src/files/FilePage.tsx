// A file below the breadcrumb: shown as text, edited in place, downloaded, or behind its seal.
import { Button, Group, SegmentedControl, Text, TextInput } from "@mantine/core";
import { IconLock, IconLockOpen, IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { readBytes, readFile } from "@/api/changes";
import { fileAddress, tenantKey } from "@/api/client";
import { type CsvTable, csvTable, type Encoding, pictureType } from "@/api/file-text";
import { fileHistoryQuery } from "@/api/queries";
import { usePanel } from "@/navigation/panel";
import { bytesText, countText } from "@/parts/formats";
import { save } from "@/parts/page";
import { EmptyNote, Placeholder } from "@/parts/states";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import { Cell, Moment } from "@/parts/values";
import { useMay } from "@/session/session";
import { FileEditor } from "./FileEditor";
import { useSealing } from "./useSealing";
import "./files.css";

const FRESH_MS = 5_000;
const SHOWN_BYTES_MAX = 5 * 1024 * 1024;
/** Of a longer file so much is shown. */
const HEAD_BYTES = 1024 * 1024;
const PICTURE_BYTES_MAX = 20 * 1024 * 1024;

export default function FilePage() {
  const { place, search, version, go } = usePanel();
  const path = search.file ?? "";
  const may = useMay();
  const revisions = useQuery(fileHistoryQuery(place, path));
  const reveal = useReveal(path);
  const sealing = useSealing();
  const { keep } = reveal;
  const [isChanged, setChanged] = useState(false);
  const revision = revisions.data?.revisions.find((one) => version === undefined || one.version <= version);
  const isSealed = revision?.sealed ?? false;
  const mayOpen = !isSealed || may("secrets:read");
  const isShown = revision !== undefined && !revision.deleted && (!isSealed || reveal.isShown);
  const isLong = (revision?.size ?? 0) > SHOWN_BYTES_MAX;
  const picture = (revision?.size ?? 0) <= PICTURE_BYTES_MAX ? pictureType(path) : undefined;
  const content = useQuery({
    queryKey: [...tenantKey(place), "file", path, version ?? "now", isLong],
    queryFn: () => readFile(place, path, version, isLong ? HEAD_BYTES : undefined),
    // What somebody types rests on the text that they see: it stays until it is saved or taken back.
    enabled: isShown && !isChanged && picture === undefined,
    gcTime: isSealed ? 0 : 60_000,
    staleTime: version === undefined && !isSealed ? FRESH_MS : Number.POSITIVE_INFINITY,
  });
  const seen = useRef(revision?.version);
  if (!isChanged) seen.current = revision?.version;
  const onChanged = useCallback(
    (changed: boolean) => {
      setChanged(changed);
      keep(changed);
    },
    [keep],
  );

  if (!revisions.data) return <Placeholder query={revisions} />;
  if (!revision || revision.deleted)
    return (
      <EmptyNote title="The file does not exist in this version.">
        The History tab lists the versions that contain it.
      </EmptyNote>
    );
  return (
    <>
      <Group gap="md">
        <Text size="xs" c="dimmed" component="div">
          {bytesText(revision.size)} · changed <Moment at={revision.modified} /> by{" "}
          {revision.author || "unknown"} · version {revision.version}
        </Text>
        <Group gap="xs" ml="auto">
          {isSealed && may("admin") && (
            <Link
              className="text-link"
              to="/audit"
              search={{ env: place.environment, tenant: place.tenant, action: "file.unseal", subject: path }}
            >
              Readers
            </Link>
          )}
          {!isSealed && version === undefined && may("snapshots:write") && !isChanged && (
            <Button loading={sealing.isPending} onClick={() => sealing.mutate([{ place, path }])}>
              Seal
            </Button>
          )}
          <Button onClick={() => go({ panel: "history" })}>Versions</Button>
          {mayOpen && <Button onClick={() => save(fileAddress(place, path, version))}>Download</Button>}
        </Group>
      </Group>
      {isSealed && content.data !== undefined && <RevealBar reveal={reveal} />}
      {isSealed && !reveal.isShown ? (
        <EmptyNote title="This file is sealed.">
          <Group gap="xs" justify="center" mb="xs">
            <IconLock size={18} aria-hidden />{" "}
            {mayOpen
              ? "Revealing it adds an entry with your name to the audit."
              : "Your key needs the scope secrets:read to open it."}
          </Group>
          {mayOpen && (
            <Button variant="filled" size="xs" onClick={reveal.show}>
              Reveal
            </Button>
          )}
        </EmptyNote>
      ) : picture !== undefined ? (
        <Picture key={`${path} ${revision.version}`} path={path} type={picture} />
      ) : content.data === undefined ? (
        <Placeholder query={content} />
      ) : content.data === null ? (
        <EmptyNote title="This file is not text.">Download it to open it in another program.</EmptyNote>
      ) : (
        <>
          <Shown encoding={content.data.encoding} size={isLong ? revision.size : undefined} />
          <FileContent
            key={`${path} ${content.data.etag}`}
            path={path}
            text={content.data.text}
            etag={content.data.etag}
            isReadOnly={
              version !== undefined || !may("snapshots:write") || isLong || content.data.encoding !== "UTF-8"
            }
            isSealed={isSealed}
            isBehind={isChanged && seen.current !== revision.version}
            onChanged={onChanged}
          />
        </>
      )}
    </>
  );
}

/** What of the file is shown, where that is not all of it or not as it is. */
function Shown({ encoding, size }: { encoding: Encoding; size: number | undefined }) {
  const told = [
    size !== undefined &&
      `These are the first lines, up to 1 MiB of ${bytesText(size)}. Download the file to see all of it.`,
    encoding !== "UTF-8" && `The file is encoded as ${encoding}. Only UTF-8 files can be edited here.`,
  ].filter(Boolean);
  if (told.length === 0) return null;
  return (
    <div className="shown-bar" role="note">
      {told.join(" ")}
    </div>
  );
}

/** Above what was revealed: for how long it is still shown, and the way to hide it at once. */
function RevealBar({ reveal }: { reveal: Reveal }) {
  return (
    <div className="reveal-bar">
      <IconLockOpen size={15} aria-hidden />
      <span>
        The content is revealed; the audit has an entry.{" "}
        {reveal.secondsLeft === null
          ? "It is shown until you save or discard your changes."
          : `It is hidden again in ${reveal.secondsLeft} s.`}
      </span>
      <Button size="compact-xs" onClick={reveal.hide}>
        Hide now
      </Button>
    </div>
  );
}

const SHOWN_SECONDS = 30;

interface Reveal {
  isShown: boolean;
  /** Until it is hidden; null while something that was typed keeps it open. */
  secondsLeft: number | null;
  show: () => void;
  hide: () => void;
  keep: (isChanged: boolean) => void;
}

/**
 * What was revealed of a sealed file is hidden again after half a minute, but not while something is
 * unsaved.
 */
function useReveal(path: string): Reveal {
  const [secondsLeft, setSecondsLeft] = useState(0);
  const [isKept, setKept] = useState(false);
  const isShown = secondsLeft > 0;

  // biome-ignore lint/correctness/useExhaustiveDependencies: another file is not revealed
  useEffect(() => {
    setSecondsLeft(0);
    setKept(false);
  }, [path]);
  useEffect(() => {
    if (!isShown || isKept) return;
    const timer = setInterval(() => setSecondsLeft((left) => left - 1), 1000);
    return () => clearInterval(timer);
  }, [isShown, isKept]);

  return {
    isShown,
    secondsLeft: isKept ? null : secondsLeft,
    show: useCallback(() => setSecondsLeft(SHOWN_SECONDS), []),
    hide: useCallback(() => {
      setSecondsLeft(0);
      setKept(false);
    }, []),
    // Who saved or took back what was typed has the whole time again.
    keep: useCallback((isChanged: boolean) => {
      setKept(isChanged);
      setSecondsLeft((left) => (left > 0 ? SHOWN_SECONDS : left));
    }, []),
  };
}

/** A picture as it is. Scripts in it cannot run: it is an image of the page, not a document. */
function Picture({ path, type }: { path: string; type: string }) {
  const { place, version } = usePanel();
  const [size, setSize] = useState("");
  const [isBroken, setBroken] = useState(false);
  const content = useQuery({
    queryKey: [...tenantKey(place), "picture", path, version ?? "now"],
    queryFn: async () => dataUrl((await readBytes(place, path, version)).bytes, type),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!content.data) return <Placeholder query={content} />;
  if (isBroken)
    return (
      <EmptyNote title="This file is not an image that the browser can show.">
        Download it to open it in another program.
      </EmptyNote>
    );
  return (
    <>
      <div className="picture">
        <img
          src={content.data}
          alt={`Content of ${path}`}
          onLoad={({ currentTarget: one }) => setSize(`${one.naturalWidth} × ${one.naturalHeight} pixels`)}
          onError={() => setBroken(true)}
        />
      </div>
      <Text size="xs" c="dimmed" role="status">
        {size}
      </Text>
    </>
  );
}

/** The page's policy shows pictures of data, and no other addresses. */
function dataUrl(bytes: BlobPart, type: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(new Blob([bytes], { type }));
  });
}

interface FileContentProps {
  path: string;
  text: string;
  etag: string;
  isReadOnly: boolean;
  isSealed: boolean;
  /** Whether somebody else saved while there is something unsaved here. */
  isBehind: boolean;
  onChanged: (isChanged: boolean) => void;
}

/** A text file as what it is: rows of a CSV file as a table, all else as text. Both can be searched. */
function FileContent(props: FileContentProps) {
  const { search, go } = usePanel();
  const isCsv = /\.csv$/i.test(props.path);
  const isTable = isCsv && search.as !== "text";
  const table = useMemo(() => (isTable ? csvTable(props.text) : null), [isTable, props.text]);
  return (
    <>
      {isCsv && (
        <SegmentedControl
          size="xs"
          className="tight"
          aria-label="How the file is shown"
          value={isTable ? "table" : "text"}
          onChange={(value) => go({ as: value === "text" ? "text" : undefined, find: undefined })}
          data={[
            { value: "table", label: "Table" },
            { value: "text", label: props.isReadOnly ? "Text" : "Edit as text" },
          ]}
        />
      )}
      {table ? <CsvGrid path={props.path} table={table} /> : <FileEditor {...props} />}
    </>
  );
}

type Row = { number: number; values: string[] };
const COLUMN_WIDTH = 150;

/**
 * The rows of a CSV file, of which only those that are seen exist; a search leaves the rows that contain a
 * text.
 */
function CsvGrid({ path, table }: { path: string; table: CsvTable }) {
  const { search, go } = usePanel();
  const text = (search.find ?? "").toLowerCase();
  const rows = useMemo(
    () =>
      table.rows
        .map((values, place): Row => ({ number: place + 1, values }))
        .filter((row) => text === "" || row.values.some((value) => value.toLowerCase().includes(text))),
    [table, text],
  );
  const columns = useMemo(() => columnsOf(table), [table]);
  return (
    <>
      <Group gap="sm">
        <TextInput
          size="xs"
          aria-label="Search this file"
          placeholder="Search"
          leftSection={<IconSearch size={14} />}
          value={search.find ?? ""}
          onChange={(event) => go({ find: event.currentTarget.value || undefined }, true)}
        />
        <Text size="xs" c="dimmed" role="status">
          {text === ""
            ? `${countText(table.rows.length)} rows`
            : `${countText(rows.length)} of ${countText(table.rows.length)} rows`}
        </Text>
      </Group>
      {table.rows.length === 0 ? (
        <EmptyNote title="The file has no rows.">
          {table.columns.length > 0 && `Its columns are ${table.columns.join(", ")}.`}
        </EmptyNote>
      ) : rows.length === 0 ? (
        <EmptyNote title={`No row contains “${search.find}”.`} />
      ) : (
        <VirtualGrid
          label={`Rows of ${path}`}
          rows={rows}
          columns={columns}
          keyOf={(row) => String(row.number)}
          rowHeight={28}
          minWidth={columns.length * COLUMN_WIDTH}
        />
      )}
    </>
  );
}

function columnsOf(table: CsvTable): Column<Row>[] {
  const numbers: Column<Row> = {
    id: "number",
    header: "Row",
    width: "56px",
    align: "right",
    cell: (row) => <span className="dim">{countText(row.number)}</span>,
  };
  const own = table.columns.map(
    (name, place): Column<Row> => ({
      id: `${place}`,
      header: name || `Column ${place + 1}`,
      width: `minmax(${COLUMN_WIDTH - 12}px, 1fr)`,
      cell: (row) => <Cell value={row.values[place]} />,
    }),
  );
  return [numbers, ...own];
}
