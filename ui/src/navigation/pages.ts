// The pages, as the navigation and the search name them, and the right that each needs.
import {
  IconBuilding,
  IconCalendarTime,
  IconHistory,
  IconKey,
  IconLayoutDashboard,
  IconPlayerPlay,
} from "@tabler/icons-react";

export const PAGES = [
  { to: "/overview", label: "Overview", scope: "snapshots:read", Icon: IconLayoutDashboard },
  { to: "/tenants", label: "Tenants", scope: "tenants:read", Icon: IconBuilding },
  { to: "/jobs", label: "Jobs", scope: "jobs:read", Icon: IconPlayerPlay },
  { to: "/schedules", label: "Schedules", scope: "jobs:read", Icon: IconCalendarTime },
  { to: "/keys", label: "Keys", scope: "admin", Icon: IconKey },
  { to: "/audit", label: "Audit", scope: "admin", Icon: IconHistory },
] as const;
