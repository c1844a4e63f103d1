import type { ComponentChildren } from "preact";
import { useErrorBoundary } from "preact/hooks";
import type { Loading } from "../data/use-loaded.ts";
import { Refusal } from "./refusal.tsx";
import { asTrouble, type Trouble } from "../data/trouble.ts";
import { clockTime } from "../format/time.ts";

/** What is the matter, and what to do about it. */
export function TroubleBox({ trouble, again }: { trouble: Trouble; again: (() => void) | null }) {
  return (
    <div class={`trouble trouble-${trouble.kind}`} role="alert">
      <h2>{trouble.heading}</h2>
      <p>{trouble.advice}</p>
      {again !== null && trouble.passes ? <p class="quiet">It is tried again by itself, with growing pauses.</p> : null}
      {again === null || trouble.kind === "damaged" ? null : (
        <button type="button" class="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** That what is shown is old: since when, and why no newer one came. */
export function Stale({ loading, again }: { loading: Loading<unknown>; again: () => void }) {
  if (loading.state !== "here" || loading.stale === null) return null;
  const { heading, advice, passes } = loading.stale;
  return (
    <div class="stale" role="status">
      <p>
        <strong>What is shown is of {clockTime(loading.heard_unix_ms)}.</strong> {heading} {passes ? "It is tried again by itself, with growing pauses." : advice}
      </p>
      <button type="button" class="button" onClick={again}>
        Try again
      </button>
    </div>
  );
}

interface Props<Value> {
  loading: Loading<Value>;
  again: () => void;
  what: string;
  children: (value: Value) => ComponentChildren;
}

/** Shows what has come, and that it is old; until then that it is on its way, and else why it
 * does not come. */
export function Loaded<Value>({ loading, again, what, children }: Props<Value>) {
  if (loading.state === "loading") {
    return (
      <p class="waiting" role="status">
        Loading {what} …
      </p>
    );
  }
  if (loading.state === "trouble") return <TroubleBox trouble={loading.trouble} again={again} />;
  return (
    <>
      <Stale loading={loading} again={again} />
      {children(loading.value)}
    </>
  );
}

/** Keeps a part that cannot be shown from taking the page with it. A boundary catches only what
 * its children throw. */
export function Guarded({ refused = false, children }: { refused?: boolean; children: ComponentChildren }) {
  const [error] = useErrorBoundary() as [unknown, () => void];
  if (error === undefined) return <>{children}</>;
  const trouble = asTrouble(error);
  if (!refused) return <TroubleBox trouble={trouble} again={null} />;
  return <Refusal heading={trouble.heading} advice={`${trouble.advice} Write the report again with “pgdyno report”.`} />;
}
