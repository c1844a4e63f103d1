import { useId, useMemo, useState } from "preact/hooks";
import type { Trial, TrialColumn } from "../model.ts";
import { addressOf } from "../router.ts";
import { useSource } from "../data/context.ts";
import type { Source } from "../data/source.ts";
import { asTrouble } from "../data/trouble.ts";
import { useEach } from "../data/use-each.ts";
import { clock } from "../format/unit.ts";
import { TroubleBox } from "../parts/state.tsx";
import { TimeAxis } from "../trial/axis.ts";
import { Chooser } from "../trial/chooser.tsx";
import { PanelChart } from "../trial/panel-chart.tsx";
import { Part } from "../trial/part.tsx";
import { StretchTable } from "../trial/stretch-table.tsx";
import { pressOn, TimeToolbar, useRange } from "../trial/time-toolbar.tsx";
import { choicesOf, commonWarmup, endOf, firstChoice, panelOfSides, seriesOf, seriesOfReport, type Drawn } from "./series.ts";
import { SideTroubles } from "./side-troubles.tsx";

/** A side with the trial that is drawn for it. */
export interface Timed {
  place: number;
  /** "B · memory". */
  title: string;
  experiment: number;
  trial: Trial;
}

/** Of a trial without details, and of no other, the report's own seconds are there to be
 * compared. */
async function seriesOfSide(source: Source, { experiment, trial }: Timed): Promise<readonly TrialColumn[]> {
  if (!source.hasTrial(trial.id)) return seriesOfReport(trial);
  try {
    return seriesOf(await source.trial(experiment, trial.id));
  } catch (error) {
    if (asTrouble(error).kind !== "missing" || trial.series.t_s.length === 0) throw error;
    return seriesOfReport(trial);
  }
}

function keyOf({ experiment, trial }: Timed): string {
  return `${String(experiment)}/${String(trial.id)}`;
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

/** What has come of the sides, and what is the matter with the others. */
function Loaded({ sides, own, onChoose }: { sides: readonly Timed[] } & Omit<ChartsProps, "sides">) {
  const source = useSource();
  const [{ values, troubles }, again] = useEach(sides.map((side) => ({ key: keyOf(side), load: () => seriesOfSide(source, side) })));
  const key = sides.map((side) => `${String(side.place)}=${keyOf(side)} ${side.title}`).join("\n");
  const drawn = useMemo(
    () =>
      sides.flatMap((side): Drawn[] => {
        const series = values.get(keyOf(side));
        const { place, title, trial } = side;
        return series === undefined ? [] : [{ place, title, trial: trial.id, warmup_s: trial.warmup_s, measured_s: trial.measured_s, series }];
      }),
    [key, values],
  );
  if (sides.some((side) => !values.has(keyOf(side)) && !troubles.has(keyOf(side)))) {
    return (
      <p class="waiting" role="status">
        Loading the trials …
      </p>
    );
  }
  const lacking = sides.flatMap((side) => {
    const trouble = troubles.get(keyOf(side));
    return trouble === undefined ? [] : [{ title: side.title, trouble }];
  });
  const first = lacking[0]?.trouble;
  if (drawn.length === 0 && first !== undefined) return <TroubleBox trouble={first} again={again} />;
  return (
    <>
      <SideTroubles what="its trial is not drawn" lacking={lacking} again={again} />
      <Charts sides={drawn} own={own} onChoose={onChoose} />
    </>
  );
}

/** Series of all sides on one axis of time. */
export function SidesOverTime({ sides }: { sides: readonly Timed[] }) {
  const source = useSource();
  const [own, setOwn] = useState<readonly string[] | null>(null);
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
      <Loaded sides={sides} own={own} onChoose={setOwn} />
    </Part>
  );
}
