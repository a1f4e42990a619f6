import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "./console.css";
import "@/parts/parts.css";
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import {
  MutationCache,
  type Query,
  QueryCache,
  QueryClient,
  QueryClientProvider,
} from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { tenantKey } from "@/api/client";
import { asProblem, PRECONDITION_FAILED, Problem, SIGNED_OUT } from "@/api/problem";
import { whoQuery } from "@/api/queries";
import { noteAnswer, noteUnreachable, refreshTenant } from "@/events/events";
import { styleNonce } from "@/parts/page";
import { setEnded } from "@/session/session";
import { whenLanded } from "@/uploads/queue";
import { makeRouter } from "./router";
import { cssVariables, theme } from "./theme";

const RETRIES_MAX = 2;
const LANDED_MS = 250;

const PASSING = new Set([0, SIGNED_OUT, 429, 503]);

/** What was refused for good is no longer shown; what was not reached stays, and its age is told. */
function noticeProblem(error: unknown, query: Query<unknown, unknown>) {
  noticeAway(error);
  if (!PASSING.has(asProblem(error).status) && query.state.data !== undefined)
    query.setState({ data: undefined });
}

/** A session that is over shows itself at any request, as does a service that cannot be reached. */
function noticeAway(error: unknown) {
  const { status, code } = asProblem(error);
  if (status === SIGNED_OUT && client.getQueryData(whoQuery.queryKey)) setEnded(true);
  if (code === "UNREACHABLE") noteUnreachable();
}

const client: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noticeProblem, onSuccess: noteAnswer }),
  mutationCache: new MutationCache({
    onError: (error) => {
      noticeAway(error);
      // What was shown is not what is there: it is read again, before the refusal is told.
      return asProblem(error).status === PRECONDITION_FAILED ? client.invalidateQueries() : undefined;
    },
  }),
  defaultOptions: {
    queries: {
      // What was refused stays refused; only what was not reached is worth a second try.
      retry: (count, error) =>
        count < RETRIES_MAX && error instanceof Problem && (error.status === 0 || error.status === 503),
    },
  },
});

const router = makeRouter(client);
// Files land in swarms; the lists that show them are asked for once a swarm.
const landed = new Map<string, ReturnType<typeof setTimeout>>();
whenLanded((place) => {
  const queryKey = tenantKey(place);
  const name = queryKey.join("/");
  if (landed.has(name)) return;
  const refresh = () => {
    landed.delete(name);
    void refreshTenant(client, place);
  };
  landed.set(name, setTimeout(refresh, LANDED_MS));
});

const root = document.getElementById("root");
if (root === null) throw new Error("The page has no root.");
// What was caught is told on the page; only what nobody foresaw is for the browser's console too.
function onCaughtError(error: unknown) {
  if (asProblem(error).code !== "PAGE_PART") console.error(error);
}
createRoot(root, { onCaughtError }).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={styleNonce}
    >
      <QueryClientProvider client={client}>
        <Notifications position="bottom-left" />
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
