// What stands around every page: the navigation on the left, below it person and theme.
import {
  ActionIcon,
  Anchor,
  Burger,
  Group,
  Kbd,
  Text,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { IconLogout, IconMoon, IconSearch, IconSun } from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import {
  Link,
  Outlet,
  useLocation,
  useNavigate,
  useParams,
  useRouter,
  useSearch,
} from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { signOut } from "@/api/changes";
import { whoQuery } from "@/api/queries";
import { useEvents, useLostSince } from "@/events/events";
import { forgetAllDrafts } from "@/files/drafts";
import { PAGES } from "@/navigation/pages";
import type { PanelSearch } from "@/navigation/search";
import { Dialog } from "@/parts/dialogs";
import { PlainTable } from "@/parts/PlainTable";
import { OVERLAYS, SHORTCUTS, useShortcuts } from "@/parts/page";
import { EmptyNote } from "@/parts/states";
import { undoLast } from "@/parts/toasts";
import type { Column } from "@/parts/VirtualGrid";
import { Moment } from "@/parts/values";
import { useEnded, useEnvironment, useMay } from "@/session/session";
import { setWholeBytesMax } from "@/uploads/queue";
import { UploadTray } from "@/uploads/UploadTray";
import { Palette } from "./Palette";
import "./shell.css";

const SignInAgain = lazy(() => import("@/session/SignInAgain"));

/** Everything behind the sign-in; who is not signed in is sent there first (see the router) and comes back. */
export function Shell() {
  const isEnded = useEnded();
  const bytesMax = useQuery(whoQuery).data?.body_bytes_max;
  useEffect(() => {
    if (bytesMax !== undefined) setWholeBytesMax(bytesMax);
  }, [bytesMax]);
  const may = useMay();
  const environment = useEnvironment();
  const { tenant } = useParams({ strict: false });
  useEvents(environment, tenant);
  useDropGuard();
  useTitle();
  const [isJumping, setJumping] = useState(false);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isHelping, setHelping] = useState(false);
  useShortcuts({ "mod+k": () => setJumping(true), "?": () => setHelping(true), "mod+z": undoLast });
  return (
    <div className="shell">
      <nav className="shell-nav" aria-label="Main">
        <div className="shell-mark">
          <img src="/assets/icon.svg" alt="" width={22} height={22} />
          <span>freezeframe</span>
        </div>
        <button type="button" className="shell-search" onClick={() => setJumping(true)}>
          <IconSearch size={15} aria-hidden />
          <span>Search</span>
          <kbd aria-hidden>Ctrl K</kbd>
        </button>
        <Burger
          className="shell-burger"
          size="sm"
          opened={isMenuOpen}
          aria-label="Menu"
          aria-expanded={isMenuOpen}
          onClick={() => setMenuOpen(!isMenuOpen)}
        />
        {/* biome-ignore lint/a11y/noStaticElementInteractions: a link that was followed closes the menu */}
        {/* biome-ignore lint/a11y/useKeyWithClickEvents: Enter on a link is a click */}
        <div className="shell-links" data-open={isMenuOpen || undefined} onClick={() => setMenuOpen(false)}>
          {PAGES.filter((page) => may(page.scope)).map(({ to, label, Icon }) => (
            <Link
              key={to}
              to={to}
              search={{ env: environment } as never}
              className="shell-link"
              activeOptions={{ includeSearch: false }}
            >
              <Icon size={17} />
              <span>{label}</span>
            </Link>
          ))}
        </div>
        <div className="shell-foot">
          <Person />
        </div>
      </nav>
      <main className="shell-main">
        <Outlet />
        <div id={OVERLAYS} />
      </main>
      <ConnectionBar />
      <UploadTray />
      {isJumping && <Palette onClose={() => setJumping(false)} environment={environment} />}
      <Suspense>{isEnded && <SignInAgain />}</Suspense>
      {isHelping && <ShortcutList onClose={() => setHelping(false)} />}
    </div>
  );
}

function Person() {
  const { data: who } = useQuery(whoQuery);
  const client = useQueryClient();
  const navigate = useNavigate();
  const router = useRouter();
  const scheme = useComputedColorScheme("light");
  const { setColorScheme } = useMantineColorScheme();
  const other = scheme === "dark" ? "light" : "dark";
  async function leave() {
    // First away from the page: it may ask whether what is typed there is to go.
    await navigate({ to: "/sign-in", search: { to: undefined } });
    if (router.state.location.pathname !== "/sign-in") return;
    await signOut();
    forgetAllDrafts();
    client.clear();
  }
  return (
    <Group gap={4} wrap="nowrap" justify="space-between">
      <Text truncate className="wide" title={who?.scopes.join(", ")}>
        {who?.name}
      </Text>
      <Group gap={4} wrap="nowrap">
        <Tooltip label={`Use the ${other} theme`}>
          <ActionIcon aria-label={`Use the ${other} theme`} onClick={() => setColorScheme(other)}>
            {scheme === "dark" ? <IconSun size={16} /> : <IconMoon size={16} />}
          </ActionIcon>
        </Tooltip>
        <Tooltip label="Sign out">
          <ActionIcon aria-label="Sign out" onClick={leave}>
            <IconLogout size={16} />
          </ActionIcon>
        </Tooltip>
      </Group>
    </Group>
  );
}

/** The answer to an address that has no page. */
export function MissingPage() {
  return (
    <main>
      <EmptyNote title="This page does not exist." isPage>
        <Anchor component={Link} to="/tenants">
          Go to the tenants
        </Anchor>
      </EmptyNote>
    </main>
  );
}

const AGAIN_MS = 3_000;

/** Says that the service cannot be reached, and how old what is shown is; asks again until it answers. */
function ConnectionBar() {
  const lostSince = useLostSince();
  const client = useQueryClient();
  const isLost = lostSince !== undefined;
  useEffect(() => {
    if (!isLost) return;
    const timer = setInterval(() => {
      client.fetchQuery({ ...whoQuery, staleTime: 0 }).then(
        () => client.invalidateQueries(),
        () => {}, // it is asked again
      );
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [isLost, client]);
  return (
    <div role="status" className="connection" hidden={!isLost}>
      {lostSince !== undefined && (
        <>
          The service cannot be reached. Last response: <Moment at={new Date(lostSince).toISOString()} />.
          Retrying.
        </>
      )}
    </div>
  );
}

/** The list of keys, shown by `?`. */
function ShortcutList({ onClose }: { onClose: () => void }) {
  const columns: Column<(typeof SHORTCUTS)[number]>[] = [
    { id: "keys", header: "Keys", cell: ([keys]) => <Kbd>{keys}</Kbd> },
    { id: "does", header: "What they do", cell: ([, does]) => does },
  ];
  return (
    <Dialog onClose={onClose} title="Keyboard shortcuts" size="sm" zIndex={300}>
      <PlainTable
        label="Shortcuts"
        columns={columns}
        rows={SHORTCUTS}
        keyOf={([keys]) => keys}
        hasHead={false}
      />
    </Dialog>
  );
}

/** A file dropped where nothing takes it must not make the browser leave the page for it. */
function useDropGuard(): void {
  useEffect(() => {
    function onDrag(event: DragEvent) {
      // Who takes files has said so by now; fields take text and links by themselves.
      if (event.defaultPrevented || !event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "none";
    }
    window.addEventListener("dragover", onDrag);
    window.addEventListener("drop", onDrag);
    return () => {
      window.removeEventListener("dragover", onDrag);
      window.removeEventListener("drop", onDrag);
    };
  }, []);
}

/** The title of the browser's tab: what is open, the tenant, the page. */
function useTitle(): void {
  const { pathname } = useLocation();
  const { tenant } = useParams({ strict: false });
  const search = useSearch({ strict: false }) as PanelSearch;
  const page = pathname.split("/")[1] ?? "";
  const open = search.stream ?? search.file ?? search.job ?? search.path;
  const parts = tenant === undefined ? [named(page)] : [open, named(search.panel ?? "snapshots"), tenant];
  const title = [...parts, "freezeframe"].filter(Boolean).join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}

function named(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
