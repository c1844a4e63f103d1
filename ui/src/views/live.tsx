import { useEffect } from "preact/hooks";
import { useSource } from "../data/context.ts";
import { useFresh, useLoaded } from "../data/use-loaded.ts";
import { LiveStrip } from "../live/strip.tsx";
import { Loaded } from "../parts/state.tsx";
import { TopBar } from "../parts/top-bar.tsx";
import { addressOf } from "../router.ts";

/** What runs at the moment. */
export function LiveView() {
  const { server } = useSource();
  const [loading, again] = useLoaded("live", () => server?.experiments() ?? Promise.resolve([]));
  useFresh(again);
  useEffect(() => {
    document.title = "Running – pgdyno";
  }, []);
  return (
    <div class="page page-plain">
      <div class="content">
        <TopBar trail={[{ name: "pgdyno", href: "#/" }, { name: "running", href: null }]} current="Running" />
        <main>
          <h1 class="view-title">What runs</h1>
          <Loaded loading={loading} again={again} what="what runs">
            {(all) => {
              const running = all.filter(({ status }) => status.startsWith("running"));
              if (running.length === 0) {
                return (
                  <>
                    <p class="empty">Nothing runs at the moment. “pgdyno run FILE” begins an experiment; it appears here within half a minute.</p>
                    <button type="button" class="button" onClick={again}>
                      Look again
                    </button>
                  </>
                );
              }
              return running.map((each) => (
                <section key={each.id}>
                  <h2>
                    <a href={addressOf.experiment("serve", each.id)}>{each.name}</a>
                  </h2>
                  <p class="lede">{each.question}</p>
                  <LiveStrip experiment={each.id} running trials={each.trials_finished + each.trials_failed} onNews={again} />
                </section>
              ));
            }}
          </Loaded>
        </main>
      </div>
    </div>
  );
}
