// Which address shows which page. Pages that few people open are loaded when they are.
import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { asProblem, SIGNED_OUT } from "@/api/problem";
import { whoQuery } from "@/api/queries";
import {
  auditSearch,
  compareSearch,
  jobsSearch,
  overviewSearch,
  panelSearch,
  tenantsSearch,
} from "@/navigation/search";
import { LateSkeleton, PartProblem } from "@/parts/states";
import { MissingPage, Shell } from "@/shell/Shell";

const root = createRootRouteWithContext<{ client: QueryClient }>()({
  component: Outlet,
  notFoundComponent: MissingPage,
  errorComponent: PartProblem,
});

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: (raw: Record<string, unknown>) => ({ to: typeof raw.to === "string" ? raw.to : undefined }),
  component: lazyRouteComponent(() => import("./session/SignInForm"), "SignInPage"),
});

const signedIn = createRoute({
  getParentRoute: () => root,
  id: "signed-in",
  beforeLoad: async ({ context, location }) => {
    const signIn = redirect({ to: "/sign-in", search: { to: location.href }, replace: true });
    // The service says in the page that the browser has no session, so that no request is refused.
    const isStranger = document.querySelector('meta[name="no-session"]') !== null;
    if (isStranger && !context.client.getQueryData(whoQuery.queryKey)) throw signIn;
    try {
      await context.client.ensureQueryData(whoQuery);
    } catch (error) {
      throw asProblem(error).status === SIGNED_OUT ? signIn : error;
    }
  },
  pendingComponent: () => <LateSkeleton label="Signing in" />,
  component: Shell,
});

const start = createRoute({
  getParentRoute: () => signedIn,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/overview" });
  },
});

const overview = createRoute({
  getParentRoute: () => signedIn,
  path: "/overview",
  validateSearch: overviewSearch,
  component: lazyRouteComponent(() => import("./overview/OverviewPage"), "OverviewPage"),
});

const tenants = createRoute({
  getParentRoute: () => signedIn,
  path: "/tenants",
  validateSearch: tenantsSearch,
  component: lazyRouteComponent(() => import("./tenants/TenantsPage"), "TenantsPage"),
});

const tenant = createRoute({
  getParentRoute: () => tenants,
  path: "$tenant",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("./tenants/TenantPanel"), "TenantPanel"),
});

const compare = createRoute({
  getParentRoute: () => signedIn,
  path: "/compare",
  validateSearch: compareSearch,
  component: lazyRouteComponent(() => import("./comparison/ComparePage"), "ComparePage"),
});

const jobs = createRoute({
  getParentRoute: () => signedIn,
  path: "/jobs",
  validateSearch: jobsSearch,
  component: lazyRouteComponent(() => import("./jobs/JobsPage"), "JobsPage"),
});

const job = createRoute({
  getParentRoute: () => jobs,
  path: "$tenant",
  validateSearch: (raw: Record<string, unknown>) => ({ ...jobsSearch(raw), ...panelSearch(raw) }),
  component: lazyRouteComponent(() => import("./tenants/JobPanel"), "JobPanel"),
});

const schedules = createRoute({
  getParentRoute: () => signedIn,
  path: "/schedules",
  validateSearch: (raw: Record<string, unknown>) => ({ env: jobsSearch(raw).env }),
  component: lazyRouteComponent(() => import("./schedules/SchedulesPage"), "SchedulesPage"),
});

const keys = createRoute({
  getParentRoute: () => signedIn,
  path: "/keys",
  component: lazyRouteComponent(() => import("./keys/KeysPage"), "KeysPage"),
});

const audit = createRoute({
  getParentRoute: () => signedIn,
  path: "/audit",
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import("./audit/AuditPage"), "AuditPage"),
});

const tree = root.addChildren([
  signIn,
  signedIn.addChildren([
    start,
    overview,
    tenants.addChildren([tenant]),
    compare,
    jobs.addChildren([job]),
    schedules,
    keys,
    audit,
  ]),
]);

export function makeRouter(client: QueryClient) {
  const router = createRouter({
    routeTree: tree,
    context: { client },
    defaultPreload: false,
    defaultErrorComponent: PartProblem,
  });
  // On a slow network the page's code is loaded while the session is requested.
  const path = location.pathname === "/" ? overview.fullPath : location.pathname;
  const [matched] = router.getMatchedRoutes(path);
  for (const route of matched) void router.loadRouteChunk(route);
  return router;
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
