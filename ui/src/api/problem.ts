// What the service says about a request that it refused (RFC 9457), or about one that never arrived.

/** The session has ended: a dialog asks to sign in again. */
export const SIGNED_OUT = 401;
export const MISSING = 404;
/** It is there already, or not what it was when it was read. */
export const PRECONDITION_FAILED = 412;
const TOO_LARGE = 413;

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    override readonly cause: string = "",
    readonly remedy: string = "",
    readonly requestId: string = "",
    /** The files that it is about, where there are several. */
    readonly paths: readonly string[] = [],
    /** The entity tags of these; null where a file is not there. */
    readonly etags: readonly (string | null)[] = [],
  ) {
    super(title);
    this.name = "Problem";
  }
}

interface ProblemBody {
  title?: string;
  detail?: string;
  code?: string;
  cause?: string;
  remedy?: string;
  request_id?: string;
  paths?: string[];
  etags?: (string | null)[];
}

/** The problem that an answer tells; the body may be anything, also that of a proxy. */
export function problemFrom(status: number, text: string, requestId: string): Problem {
  let body: ProblemBody = {};
  try {
    body = JSON.parse(text) as ProblemBody;
  } catch {
    // A proxy's page has no fields: the status alone is told.
  }
  const plain =
    status === TOO_LARGE
      ? "A proxy refuses a body of this size (413): raise its limit."
      : `The service answered ${status}.`;
  const title = body.title ?? body.detail ?? plain;
  return new Problem(
    status,
    body.code ?? "",
    title,
    body.cause ?? "",
    body.remedy ?? "",
    body.request_id ?? requestId,
    body.paths ?? [],
    body.etags ?? [],
  );
}

export function unreachable(): Problem {
  return new Problem(
    0,
    "UNREACHABLE",
    "The service cannot be reached.",
    "It is stopped, or the network connection is down.",
    "Try again. If that fails, check that `freezeframe serve` is running.",
  );
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const text = error instanceof Error ? error.message : String(error);
  // The browsers' and the bundler's own words; there is no type to tell it by.
  if (/preload CSS|imported module|module script/i.test(text))
    return new Problem(
      0,
      "PAGE_PART",
      "This part of the console could not be loaded.",
      "The service is stopped, or it was upgraded after this page was opened.",
      "Reload the page when the service runs: it opens at the same place.",
    );
  return new Problem(0, "PAGE", "An error occurred in this page.", text, "Reload the page.");
}
