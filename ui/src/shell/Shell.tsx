// What stands around every page: the navigation on the left, below it environment, person and theme.
import {
  ActionIcon,
  Burger,
  Group,
  Select,
  Text,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import {
  IconBuilding,
  IconCalendarTime,
  IconHistory,
  IconKey,
  IconLayoutDashboard,
  IconLogout,
  IconMoon,
  IconPlayerPlay,
  IconSearch,
  IconShieldCheck,
  IconSun,
} from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useRouter } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { signOut } from "@/api/changes";
import { environmentsQuery, whoQuery } from "@/api/queries";
import { useEvents } from "@/events/useEvents";
import { forgetAllDrafts } from "@/files/drafts";
import { OVERLAYS } from "@/parts/overlays";
import { useShortcuts } from "@/parts/shortcuts";
import { undoLast } from "@/parts/toasts";
import { rememberEnvironment, useEnvironment, useMay } from "@/session/session";
import { UploadTray } from "@/uploads/UploadTray";
import { ConnectionBar } from "./ConnectionBar";
import { ShortcutList } from "./ShortcutList";
import { useDropGuard } from "./useDropGuard";
import { useTitle } from "./useTitle";
import "./shell.css";

const Palette = lazy(() => import("./Palette").then((module) => ({ default: module.Palette })));

export function Shell({ children }: { children: ReactNode }) {
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
          <Entry
            to="/overview"
            icon={<IconLayoutDashboard size={17} />}
            label="Overview"
            environment={environment}
          />
          <Entry to="/tenants" icon={<IconBuilding size={17} />} label="Tenants" environment={environment} />
          {may("jobs:read") && (
            <Entry to="/jobs" icon={<IconPlayerPlay size={17} />} label="Jobs" environment={environment} />
          )}
          {may("jobs:read") && (
            <Entry
              to="/schedules"
              icon={<IconCalendarTime size={17} />}
              label="Schedules"
              environment={environment}
            />
          )}
          {may("admin") && (
            <Entry to="/keys" icon={<IconKey size={17} />} label="Keys" environment={environment} />
          )}
          {may("admin") && (
            <Entry to="/proof" icon={<IconShieldCheck size={17} />} label="Proof" environment={environment} />
          )}
          {may("admin") && (
            <Entry to="/audit" icon={<IconHistory size={17} />} label="Audit" environment={environment} />
          )}
        </div>
        <div className="shell-foot">
          <Environment current={environment} />
          <Person />
        </div>
      </nav>
      <main className="shell-main">
        {children}
        <div id={OVERLAYS} />
      </main>
      <ConnectionBar />
      <UploadTray />
      {isJumping && (
        <Suspense>
          <Palette onClose={() => setJumping(false)} environment={environment} />
        </Suspense>
      )}
      <ShortcutList isOpen={isHelping} onClose={() => setHelping(false)} />
    </div>
  );
}

function Entry(props: {
  to: "/overview" | "/tenants" | "/jobs" | "/schedules" | "/keys" | "/proof" | "/audit";
  icon: ReactNode;
  label: string;
  environment: string;
}) {
  return (
    <Link
      to={props.to}
      search={{ env: props.environment } as never}
      className="shell-link"
      activeOptions={{ includeSearch: false }}
    >
      {props.icon}
      <span>{props.label}</span>
    </Link>
  );
}

function Environment({ current }: { current: string }) {
  const { data = [] } = useQuery(environmentsQuery);
  const navigate = useNavigate();
  return (
    <Select
      size="xs"
      aria-label="Environment"
      className="shell-environment"
      data={[...new Set([...data, current])]}
      value={current}
      allowDeselect={false}
      onChange={(value) => {
        if (value === null) return;
        rememberEnvironment(value);
        void navigate({ to: "/tenants", search: { env: value } });
      }}
    />
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
      <Text size="sm" truncate className="wide" title={who?.scopes.join(", ")}>
        {who?.name}
      </Text>
      <Group gap={4} wrap="nowrap">
        <Tooltip label={`Use the ${other} theme`}>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Use the ${other} theme`}
            onClick={() => setColorScheme(other)}
          >
            {scheme === "dark" ? <IconSun size={16} /> : <IconMoon size={16} />}
          </ActionIcon>
        </Tooltip>
        <Tooltip label="Sign out">
          <ActionIcon variant="subtle" color="gray" aria-label="Sign out" onClick={leave}>
            <IconLogout size={16} />
          </ActionIcon>
        </Tooltip>
      </Group>
    </Group>
  );
}
