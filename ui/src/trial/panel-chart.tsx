import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Stretch } from "../analysis/steady.ts";
import { useWidth } from "../charts/use-width.ts";
import { useDisplay } from "../display.ts";
import { clock, unitInWords, valueWithUnit } from "../format/unit.ts";
import type { Mark } from "../model.ts";
import type { PictureKey } from "../pictures/time-decor.ts";
import { SaveButtons } from "../parts/save-buttons.tsx";
import { stack, stretchOf, table } from "./align.ts";
import type { TimeAxis } from "./axis.ts";
import { DASHED_MAX, panelOptions, styleOf } from "./options.ts";
import type { Line, Panel } from "./panels.ts";

interface Props {
  panel: Panel;
  axis: TimeAxis;
  marks: readonly Mark[];
  warmup_s: number;
  unsettled: Stretch | null;
  group: string;
  onRemove: (() => void) | null;
}

export function panelSummary({ title, unit, lines }: Panel): string {
  const parts = lines.map((line) => {
    const found = stretchOf(line, null);
    const value = (each: number) => valueWithUnit(each, unit);
    return found === null ? `${line.title}: no values` : `${line.title}: mean ${value(found.mean)}, from ${value(found.least)} to ${value(found.most)}`;
  });
  return `${title} over time. ${parts.join("; ")}. The table below the charts holds these values for the selected time.`;
}

/** A line's colour, dash and name with the value under the pointer, which is written without
 * drawing the page again. */
function Key({ panel, line, keep }: { panel: Panel; line: number; keep: (element: HTMLElement | null) => void }) {
  const { variable, dash } = styleOf(panel, line);
  return (
    <li>
      <svg width="18" height="10" viewBox="0 0 18 10" aria-hidden="true">
        {panel.stacked ? (
          <rect x="1" y="0" width="12" height="10" fill={`var(${variable})`} opacity="0.72" />
        ) : (
          <line x1="0" x2="18" y1="5" y2="5" stroke={`var(${variable})`} stroke-width="2" stroke-dasharray={dash.join(" ")} />
        )}
      </svg>
      <span>{panel.lines[line]?.title}</span>
      <output class="key-value" aria-live="off" ref={keep} />
    </li>
  );
}

function keyOf(panel: Panel, { title, values }: Line, place: number): PictureKey {
  const { variable, dash } = styleOf(panel, place);
  return { title, variable, dash: values.length > DASHED_MAX ? [] : dash, area: panel.stacked };
}

export function PanelChart({ panel, axis, marks, warmup_s, unsettled, group, onRemove }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const values = useRef<(HTMLElement | null)[]>([]);
  const instant = useRef<HTMLOutputElement>(null);
  const width = useWidth(holder);
  const { theme } = useDisplay();
  const data = useMemo(() => table(panel), [panel]);
  const summary = useMemo(() => panelSummary(panel), [panel]);
  useLayoutEffect(() => {
    const node = holder.current;
    if (node === null || width === 0) return undefined;
    const onCursor = (index: number | null) => {
      panel.lines.forEach((_, line) => {
        const element = values.current[line];
        if (element !== null && element !== undefined) element.textContent = index === null ? "" : valueWithUnit(data.columns[line]?.[index], panel.unit);
      });
      if (instant.current !== null) instant.current.textContent = index === null ? "" : clock(data.seconds[index] ?? 0);
    };
    const columns = panel.stacked ? stack(data.columns).toReversed() : data.columns;
    const made = new uPlot(panelOptions({ panel, axis, marks, warmup_s, unsettled, width, group, onCursor }), [data.seconds, ...columns], node);
    chart.current = made;
    const remove = axis.add(made);
    return () => {
      remove();
      chart.current = null;
      made.destroy();
    };
  }, [data, width, theme, axis, marks, warmup_s, unsettled, group, panel]);
  return (
    <figure class="panel">
      <figcaption class="panel-head">
        <h3>{panel.title}</h3>
        <output class="panel-instant" aria-live="off" ref={instant} />
        <ul class="panel-keys">
          {panel.lines.map((_, place) => (
            <Key key={place} panel={panel} line={place} keep={(element) => { values.current[place] = element; }} />
          ))}
          {panel.more > 0 ? <li class="quiet">and {panel.more} smaller</li> : null}
        </ul>
        {onRemove === null ? null : (
          <button type="button" class="button-bare panel-remove" aria-label={`Remove ${panel.title}`} onClick={onRemove}>
            ×
          </button>
        )}
      </figcaption>
      <div class="chart panel-chart" ref={holder} role="img" aria-label={summary} />
      <SaveButtons name={panel.title} picture={() => (chart.current === null ? null : { kind: "time", chart: chart.current, title: panel.title, unit: unitInWords(panel.unit), decor: { warmup_s, unsettled: unsettled === null ? [] : [unsettled], trials: 1, marks, strip: false, keys: panel.lines.map((line, place) => keyOf(panel, line, place)) } })} />
    </figure>
  );
}
