import { useId, useMemo, useState } from "preact/hooks";
import type { Trial } from "../model.ts";
import { addressOf } from "../router.ts";
import { useSource } from "../data/context.ts";
import type { Source } from "../data/source.ts";
import { useLoaded } from "../data/use-loaded.ts";
import { clock } from "../format/unit.ts";
import { Loaded } from "../parts/state.tsx";
import { TimeAxis } from "../trial/axis.ts";
import { Chooser } from "../trial/chooser.tsx";
import { PanelChart } from "../trial/panel-chart.tsx";
import { Part } from "../trial/part.tsx";
import { StretchTable } from "../trial/stretch-table.tsx";
import { pressOn, TimeToolbar, useRange } from "../trial/time-toolbar.tsx";
import { choicesOf, commonWarmup, endOf, firstChoice, panelOfSides, seriesOf, seriesOfReport, type Drawn } from "./series.ts";

/** A side with the trial that is drawn for it. */
export interface Timed {
  place: number;
  /** "B · memory". */
  title: string;
  experiment: number;
  trial: Trial;
}

async function drawnOf(source: Source, { place, title, experiment, trial }: Timed): Promise<Drawn> {
  const plain = { place, title, trial: trial.id, warmup_s: trial.warmup_s, measured_s: trial.measured_s };
  // Without its details the report's own seconds are still there to be compared.
  if (!source.hasTrial(trial.id)) return { ...plain, series: seriesOfReport(trial) };
  try {
    return { ...plain, series: seriesOf(await source.trial(experiment, trial.id)) };
  } catch (error) {
    if (trial.series.t_s.length === 0) throw error;
    return { ...plain, series: seriesOfReport(trial) };
  }
}

interface ChartsProps {
  sides: readonly Drawn[];
  /** Series chosen by the reader; null until then. Kept while sides come and go. */
  own: readonly string[] | null;
  onChoose: (own: readonly string[] | null) => void;
}

function Charts({ sides, own, onChoose }: ChartsProps) {
  const axis = useMemo(() => new TimeAxis([0, endOf(sides)]), [sides]);
  const all = useMemo(() => choicesOf(sides), [sides]);
  const first = useMemo(() => firstChoice(sides), [sides]);
  const chosen = own ?? first;
  const range = useRange(axis);
  const panels = useMemo(() => chosen.map((id) => panelOfSides(sides, id)).filter((panel) => panel !== null), [sides, chosen]);
  const toggle = (id: string) => {
    onChoose(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  };
  const marks = useMemo(() => [], []);
  const helpId = useId();
  if (all.length === 0) return <p class="empty">Nothing was recorded over time on any side.</p>;
  return (
    <>
      <Chooser all={all} chosen={chosen} onToggle={toggle} onReset={() => { onChoose(null); }} />
      <div class="panels panels-wide" role="figure" aria-label="Charts over time" aria-describedby={helpId} tabIndex={0} onKeyDown={pressOn(axis)}>
        <TimeToolbar axis={axis} range={range} instant={clock} helpId={helpId} charts="all charts" />
        {panels.length === 0 ? <p class="empty">No series is chosen.</p> : null}
        {panels.map((panel) => (
          <PanelChart key={panel.id} panel={panel} axis={axis} marks={marks} warmup_s={commonWarmup(sides) ?? 0} unsettled={null} group="compare" onRemove={() => { toggle(panel.id); }} />
        ))}
      </div>
      <StretchTable panels={panels} range={range} />
    </>
  );
}

/** Series of all sides on one axis of time. */
export function SidesOverTime({ sides }: { sides: readonly Timed[] }) {
  const source = useSource();
  const [own, setOwn] = useState<readonly string[] | null>(null);
  const key = sides.map(({ place, experiment, trial }) => `${String(place)}=${String(experiment)}/${String(trial.id)}`).join(" ");
  const [loading, again] = useLoaded(`compare-time/${key}`, () => Promise.all(sides.map((side) => drawnOf(source, side))));
  if (sides.length === 0) return null;
  const same = commonWarmup(sides.map(({ place, title, trial }) => ({ place, title, trial: trial.id, warmup_s: trial.warmup_s, measured_s: 0, series: [] })));
  const warmup = same === null ? "Their warm-ups differ in length, so none is shaded." : "The warm-up is shaded.";
  return (
    <Part id="over-time" title="Over time" lede={`A trial of each side, counted from where its load began; of a treatment the middle one by throughput. ${warmup}`}>
      <ul class="circumstances">
        {sides.map(({ place, title, experiment, trial }) => (
          <li key={place}>
            {title}: {source.hasTrial(trial.id) ? <a href={addressOf.trial(source.mode, experiment, trial.id)}>trial {trial.id}, block {trial.block}</a> : <>trial {trial.id}, block {trial.block}</>}
          </li>
        ))}
      </ul>
      <Loaded loading={loading} again={again} what="the trials">
        {(drawn) => <Charts sides={drawn} own={own} onChoose={setOwn} />}
      </Loaded>
    </Part>
  );
}
