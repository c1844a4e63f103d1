import { PercentileChart } from "../charts/percentile-chart.tsx";
import { Swatch } from "../charts/swatch.tsx";
import { useSource } from "../data/context.ts";
import type { Source } from "../data/source.ts";
import { asTrouble } from "../data/trouble.ts";
import { useEach } from "../data/use-each.ts";
import { count, plural } from "../format/number.ts";
import { shortDateTime } from "../format/time.ts";
import type { Report } from "../model.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { PercentileTable } from "../parts/percentile-table.tsx";
import { Part } from "../trial/part.tsx";
import { SideTroubles } from "./side-troubles.tsx";
import { settingLines, settingsDiffer, type Side } from "./side.ts";
import { specText, treatmentOf, type Spec } from "./spec.ts";

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

/** What is shown side by side. */
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

/** The curve in a trial's document; null where it has none, and the report's percentiles are all
 * there is. */
async function curveOf(source: Source, experiment: number, trial: number): Promise<Side["distribution"] | null> {
  try {
    const { distribution } = await source.trial(experiment, trial);
    return distribution !== undefined && distribution.length > 1 ? distribution : null;
  } catch (error) {
    if (asTrouble(error).kind === "missing") return null;
    throw error;
  }
}

/** Percentile curves of all sides together; those of trials come with their documents. */
export function SidesPercentiles({ sides }: { sides: readonly Chosen[] }) {
  const source = useSource();
  const [{ values, troubles }, again] = useEach(
    sides.flatMap(({ spec }) => {
      const { experiment, trial } = spec;
      return trial === null || !source.hasTrial(trial) ? [] : [{ key: specText(spec), load: () => curveOf(source, experiment, trial) }];
    }),
  );
  const known = sides.map(({ spec, side }) => values.get(specText(spec)) ?? side.distribution);
  const lacking = sides.flatMap(({ spec, letter, side }) => {
    const trouble = troubles.get(specText(spec));
    return trouble === undefined ? [] : [{ title: `${letter} · ${side.short}`, trouble }];
  });
  const drawn = sides.map(({ letter, side, place }, index) => ({ name: `${letter} ${side.name} ${String(known[index]?.length)}`, title: `${letter} · ${side.short}`, distribution: known[index] ?? [], place }));
  // Its place among the sides is how a line is drawn; sides that are not there yet keep theirs.
  const nobody = { name: "", title: "", distribution: [] };
  const plan = Array.from({ length: 1 + Math.max(0, ...sides.map(({ place }) => place)) }, (_, place) => drawn.find((each) => each.place === place) ?? nobody);
  return (
    <Part id="response" title="Response times" lede="To the right each further nine has the same room.">
      <SideTroubles what="of its curve only some percentiles are known" lacking={lacking} again={again} />
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
