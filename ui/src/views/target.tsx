import { useEffect } from "preact/hooks";
import { useSource } from "../data/context.ts";
import { useLoaded, useReturn } from "../data/use-loaded.ts";
import { useRest } from "../data/use-rest.ts";
import type { Target, Targets } from "../model.ts";
import { Loaded } from "../parts/state.tsx";
import { TopBar } from "../parts/top-bar.tsx";
import { addressOf } from "../router.ts";
import { OnHost, TargetContent } from "../target/content.tsx";
import { clockTime } from "../format/time.ts";
import { plural } from "../format/number.ts";

function List({ all }: { all: readonly Target[] }) {
  if (all.length === 0) return <p class="empty">No target is known: no experiment has been stored yet.</p>;
  return (
    <ul class="target-list">
      {all.map(({ name, experiments, changed }) => (
        <li key={name}>
          <a href={addressOf.target(name)}>{name}</a>
          <span class="quiet">
            {plural(experiments.length, "experiment")}
            {changed === null || changed.length === 0 ? "" : `, ${plural(changed.flatMap(({ changes }) => changes).length, "setting")} changed now`}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** A target, or all of them. */
export function TargetView({ name }: { name: string | null }) {
  const { server } = useSource();
  const [loading, again] = useLoaded<Targets>("targets", () => server?.targets() ?? Promise.resolve({ targets: [], changed_on_host: null, why_not_known: null, servers_asked: true }));
  // Each look asks the servers: by a timer only as long as advice is being made.
  useReturn(again);
  useRest(loading, ({ targets }) => targets.every(({ is_advice_due: isDue }) => !isDue), again);
  useEffect(() => {
    document.title = `${name ?? "Targets"} – pgdyno`;
  }, [name]);
  return (
    <div class="page page-plain">
      <div class="content">
        <TopBar trail={[{ name: "pgdyno", href: "#/" }, { name: "targets", href: name === null ? null : "#/targets" }, ...(name === null ? [] : [{ name, href: null }])]} current="Targets" />
        <main>
          <h1 class="view-title">{name ?? "Targets"}</h1>
          {loading.state === "here" ? (
            <p class="side-buttons">
              <button type="button" class="button" onClick={again}>
                Look again
              </button>{" "}
              <span class="quiet">as of {clockTime(loading.heard_unix_ms)}</span>
            </p>
          ) : null}
          <Loaded loading={loading} again={again} what="the targets">
            {(all) => {
              const { targets } = all;
              if (name === null) {
                return (
                  <>
                    <List all={targets} />
                    <OnHost all={all} />
                  </>
                );
              }
              const found = targets.find((target) => target.name === name);
              return found === undefined ? <p class="empty">This store has no target of that name.</p> : <TargetContent target={found} />;
            }}
          </Loaded>
        </main>
      </div>
    </div>
  );
}
