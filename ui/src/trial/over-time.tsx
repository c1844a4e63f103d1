import { useCallback, useId, useMemo, useRef, useState } from "preact/hooks";
import { unsettledStretch } from "../analysis/steady.ts";
import { ShadeKey } from "../charts/shade-key.tsx";
import { plural } from "../format/number.ts";
import { clock } from "../format/unit.ts";
import type { MarkKind, TrialDocument } from "../model.ts";
import { TimeAxis } from "./axis.ts";
import { Chooser } from "./chooser.tsx";
import { isDrawn } from "./draw-marks.ts";
import { MarkChoice, MarkTable, Missing } from "./events.tsx";
import { PanelChart } from "./panel-chart.tsx";
import { choices, defaultPanels, LAYER_TITLE, LAYERS, panelOf, type Panel } from "./panels.ts";
import { StretchTable } from "./stretch-table.tsx";
import { pressOn, TimeToolbar, useRange } from "./time-toolbar.tsx";

function endOf(document: TrialDocument): number {
  const ends = document.series.map(({ t_ms }) => t_ms.at(-1) ?? 0);
  return Math.max(1, document.warmup_s + document.measured_s, ...ends.map((ms) => ms / 1000));
}

/** All charts of a trial on one axis of time. */
export function TrialOverTime({ document }: { document: TrialDocument }) {
  const axis = useMemo(() => new TimeAxis([0, endOf(document)]), [document]);
  const first = useMemo(() => defaultPanels(document).map(({ id }) => id), [document]);
  const all = useMemo(() => choices(document), [document]);
  const [chosen, setChosen] = useState<readonly string[]>(first);
  const [hidden, setHidden] = useState<ReadonlySet<MarkKind>>(new Set());
  const range = useRange(axis);
  const cache = useRef(new Map<string, Panel | null>());
  const panels = useMemo(() => {
    const known = cache.current;
    return chosen
      .map((id) => {
        if (!known.has(id)) known.set(id, panelOf(document, id));
        return known.get(id) ?? null;
      })
      .filter((panel) => panel !== null);
  }, [chosen, document]);
  const marks = useMemo(() => document.marks.filter((mark) => isDrawn(mark) && !hidden.has(mark.kind)), [document, hidden]);
  const unsettled = useMemo(() => unsettledStretch({ ...document, unsettled_s: document.trial.unsettled_s ?? null }), [document]);
  const toggle = useCallback((id: string) => {
    setChosen((now) => (now.includes(id) ? now.filter((each) => each !== id) : [...now, id]));
  }, []);
  const helpId = useId();
  const group = `trial-${String(document.trial.id)}`;
  return (
    <>
      <div class="controls">
        <MarkChoice marks={document.marks} hidden={hidden} onChange={setHidden} />
        <ShadeKey warmup_s={document.warmup_s} unsettled={unsettled === null ? null : `measured before it was steady: ${plural(unsettled.to_s - unsettled.from_s, "second")}, in no rate and no response time`} />
      </div>
      <Chooser all={all} chosen={chosen} onToggle={toggle} onReset={() => { setChosen(first); }} />
      <div class="panels" role="figure" aria-label="Charts over time" aria-describedby={helpId} tabIndex={0} onKeyDown={pressOn(axis)}>
        <TimeToolbar axis={axis} range={range} instant={clock} helpId={helpId} charts="all charts" />
        {panels.length === 0 ? <p class="empty">No series is chosen.</p> : null}
        {LAYERS.map((layer) => ({ layer, own: panels.filter((panel) => panel.layer === layer) }))
          .filter(({ own }) => own.length > 0)
          .map(({ layer, own }) => (
            <div key={layer} class="panel-layer" role="group" aria-label={LAYER_TITLE[layer]}>
              <p class="panel-layer-name">{LAYER_TITLE[layer]}</p>
              <div class="panel-grid">
                {own.map((panel) => (
                  <PanelChart key={panel.id} panel={panel} axis={axis} marks={marks} warmup_s={document.warmup_s} unsettled={unsettled} group={group} onRemove={() => { toggle(panel.id); }} />
                ))}
              </div>
            </div>
          ))}
      </div>
      <StretchTable panels={panels} range={range} />
      <MarkTable marks={document.marks} />
      <Missing marks={document.marks} />
    </>
  );
}
