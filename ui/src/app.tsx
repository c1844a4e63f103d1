import { useEffect, useRef } from "preact/hooks";
import { SourceContext } from "./data/context.ts";
import type { Source } from "./data/source.ts";
import { Trouble } from "./data/trouble.ts";
import { useRoute, type Route } from "./router.ts";
import { Guarded, TroubleBox } from "./parts/state.tsx";
import { TopBar } from "./parts/top-bar.tsx";
import { CompareView } from "./views/compare.tsx";
import { ExperimentView } from "./views/experiment.tsx";
import { IndexView } from "./views/index.tsx";
import { LiveView } from "./views/live.tsx";
import { TargetView } from "./views/target.tsx";
import { TrialView } from "./views/trial.tsx";

function View({ route }: { route: Route }) {
  switch (route.view) {
    case "index":
      return <IndexView query={route.query} />;
    case "experiment":
      return <ExperimentView experiment={route.experiment} section={route.section} />;
    case "trial":
      return <TrialView experiment={route.experiment} trial={route.trial} />;
    case "compare":
      return <CompareView sides={route.sides} />;
    case "target":
      return <TargetView name={route.name} />;
    case "live":
      return <LiveView />;
    case "unknown":
      return (
        <div class="page page-plain">
          <div class="content">
            <TopBar trail={[{ name: "pgdyno", href: "#/" }]} />
            <TroubleBox trouble={new Trouble("missing", "There is no such page.", `The address asks for “${route.asked}”. The first page is at “#/”.`)} again={null} />
          </div>
        </div>
      );
  }
}

function keyOf(route: Route): string {
  switch (route.view) {
    case "experiment":
      return `experiment/${String(route.experiment)}`;
    case "trial":
      return `trial/${String(route.experiment)}/${String(route.trial)}`;
    case "index":
    case "compare":
    case "target":
    case "live":
    case "unknown":
      return route.view;
  }
}

/** The page: one view at a time, named by the fragment of the address. */
export function App({ source }: { source: Source }) {
  const route = useRoute(source.mode);
  const key = keyOf(route);
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    // Another view begins at its top, for the eye and for the keyboard.
    window.scrollTo(0, 0);
    document.getElementById("app")?.focus({ preventScroll: true });
  }, [key]);
  return (
    <SourceContext.Provider value={source}>
      <Guarded key={key}>
        <View route={route} />
      </Guarded>
    </SourceContext.Provider>
  );
}
