import { PercentileChart } from "../charts/percentile-chart.tsx";
import { Swatch } from "../charts/swatch.tsx";
import { useSource } from "../data/context.ts";
import { useLoaded } from "../data/use-loaded.ts";
import { count, plural } from "../format/number.ts";
import { shortDateTime } from "../format/time.ts";
import type { Report } from "../model.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { PercentileTable } from "../parts/percentile-table.tsx";
import { Part } from "../trial/part.tsx";
import { settingLines, settingsDiffer, type Side } from "./side.ts";
import { treatmentOf, type Spec } from "./spec.ts";

/** A side that was chosen and is there. */
export interface Chosen {
  /** Among all sides: its letter, colour, dash and marker. */
  place: number;
  letter: string;
  spec: Spec;
  report: Report;
  side: Side;
}

function whatOf({ spec, side, report }: Chosen): string {
  if (spec.trial !== null) return side.title;
  if (spec.treatment !== null) return side.short;
  return `all of it; ${side.short} is drawn (${plural(report.treatments.length, "treatment")})`;
}

/** What stands beside each other. */
export function SidesTable({ sides }: { sides: readonly Chosen[] }) {
  return (
    <DataTable class="cards compare-table" caption="What is compared" headings={["", "Experiment", "What", "Load", "Trials that count", "Began"]}>
      {sides.map((chosen) => {
        const { place, letter, spec, report } = chosen;
        const treatment = report.treatments.find(({ name }) => name === treatmentOf(report, spec));
        const { name, scale, clients } = treatment?.workload ?? report.experiment.workload;
        const trial = report.trials.find(({ id }) => id === spec.trial);
        const trials = trial === undefined ? (spec.treatment === null ? report.trials.filter(({ status }) => status === "finished").length : (treatment?.trials_finished ?? 0)) : 1;
        return (
          <tr role="row" key={place}>
            <th scope="row" role="rowheader" class="side-name">
              <Swatch index={place} plain={false} /> {letter}
            </th>
            <Cell label="Experiment">{report.experiment.id} · {report.experiment.name}</Cell>
            <Cell label="What">{whatOf(chosen)}</Cell>
            <Cell label="Load">{name}, scale {count(scale)}, {plural(clients, "client")}</Cell>
            <Cell label="Trials that count" number>{count(trials)}</Cell>
            <Cell label="Began">{shortDateTime(trial?.started_unix_ms ?? report.experiment.started_unix_ms)}</Cell>
          </tr>
        );
      })}
    </DataTable>
  );
}

/** Percentile curves of all sides together; those of trials come with their documents. */
export function SidesPercentiles({ sides }: { sides: readonly Chosen[] }) {
  const source = useSource();
  const key = sides.map(({ place, side }) => `${String(place)}=${side.name}`).join(" ");
  const [loading] = useLoaded(`compare-response/${key}`, () =>
    Promise.all(
      sides.map(async ({ spec, side }) => {
        if (spec.trial === null || !source.hasTrial(spec.trial)) return side.distribution;
        const document = await source.trial(spec.experiment, spec.trial).catch(() => null);
        const own = document?.distribution ?? [];
        return own.length > 1 ? own : side.distribution;
      }),
    ),
  );
  const known = loading.state === "here" ? loading.value : sides.map(({ side }) => side.distribution);
  const drawn = sides.map(({ letter, side, place }, index) => ({ name: `${letter} ${side.name} ${String(known[index]?.length)}`, title: `${letter} · ${side.short}`, distribution: known[index] ?? [], place }));
  // Its place among the sides is how a line is drawn; sides that are not there yet keep theirs.
  const nobody = { name: "", title: "", distribution: [] };
  const plan = Array.from({ length: 1 + Math.max(0, ...sides.map(({ place }) => place)) }, (_, place) => drawn.find((each) => each.place === place) ?? nobody);
  return (
    <Part id="response" title="Response times" lede="To the right each further nine has the same room.">
      <figure>
        <PercentileChart treatments={drawn.map(({ place }) => plan[place] ?? nobody)} plan={plan} />
      </figure>
      <PercentileTable rows={drawn} of="Side" />
    </Part>
  );
}

/** Settings that are not the same on all sides. */
export function SidesSettings({ sides }: { sides: readonly Chosen[] }) {
  const rows = settingsDiffer(sides.map(({ side }) => side.settings));
  const value = (text: string | null | undefined) => (text === null || text === undefined ? <span class="quiet">as it was</span> : <code>{text}</code>);
  return (
    <Part id="settings" title="Settings that differ">
      {rows.length === 0 ? (
        <p class="quiet">All set the same.</p>
      ) : (
        <>
          <p class="copy-line">
            {sides.map(({ place, letter }, column) => (
              <span key={place}>
                {letter} as lines: <CopyButton text={settingLines(rows, column)} what={`Settings of ${letter} that differ`} />{" "}
              </span>
            ))}
          </p>
          <DataTable class="cards compare-table" captionHidden caption="Settings that differ" headings={["Setting", ...sides.map(({ letter, side }) => `${letter}: ${side.short}`)]}>
            {rows.map(({ knob, values }) => (
              <tr role="row" key={knob}>
                <th scope="row" role="rowheader"><code>{knob}</code></th>
                {sides.map(({ place, letter }, column) => (
                  <Cell key={place} label={letter}>{value(values[column])}</Cell>
                ))}
              </tr>
            ))}
          </DataTable>
        </>
      )}
    </Part>
  );
}
