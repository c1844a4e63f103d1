import * as Plot from "@observablehq/plot";
import { useCallback } from "preact/hooks";
import { axisOf, pointsOf, titleOf, topOf, type Axis, type ChartPoint } from "../analysis/study-chart.ts";
import { bareFigure } from "../analysis/metric.ts";
import { tick } from "../format/number.ts";
import { axisTick } from "../format/unit.ts";
import type { StudyChart as Chart, StudyTable, TableBlock } from "../model.ts";
import { legendOf } from "./legend-mark.ts";
import { plotSymbol } from "./markers.ts";
import { PlotFigure } from "./plot-figure.tsx";
import { treatmentStyle } from "./style.ts";

const HEIGHT = 300;
const LEFT = 64;
const BOTTOM = 48;
const ROW_HEIGHT = 30;
/** The part of a place that its bars take together. */
const GROUP = 0.8;

export function chartSummary({ form, table }: Chart, block: TableBlock): string {
  const lines = table.columns.map(({ title }, line) => {
    const at = block.rows.flatMap(({ title: place, cells }) => {
      const cell = cells[line] ?? null;
      return cell === null ? [] : [`${place}: ${bareFigure(cell.mean)}`];
    });
    return `${title}: ${at.length === 0 ? "nothing" : at.join(", ")}`;
  });
  const kind = form === "heat" ? "Heat table" : form === "bars" ? "Bars" : "Lines";
  return `${kind} of ${titleOf(table, block.title)} over ${table.rows}. ${lines.join("; ")}.`;
}

function names({ columns }: StudyTable): string[] {
  return columns.map(({ title }) => title);
}

/** The frame of lines and bars: the legend on top, an axis from zero, the places below. */
function framed(table: StudyTable, width: number, x: Plot.ScaleOptions, below: Plot.Markish, drawn: Plot.Markish[], as: "lines" | "bars"): Element {
  const legend = legendOf(names(table), width, as);
  return Plot.plot({
    width,
    height: HEIGHT + legend.height,
    marginTop: legend.height + 24,
    marginBottom: BOTTOM,
    marginLeft: LEFT,
    marginRight: 20,
    className: "plot",
    x: { label: null, ...x },
    y: { domain: [0, topOf(table)], label: null, clamp: true },
    marks: [
      legend.mark,
      Plot.gridY({ stroke: "var(--line)", strokeOpacity: 1, ticks: 5 }),
      Plot.axisY({ ticks: 5, tickSize: 0, tickFormat: axisTick, label: null }),
      Plot.text([table.columns[0]?.figure_title ?? ""], { frameAnchor: "top-left", textAnchor: "start", dx: 8 - LEFT, dy: -18, text: (title: string) => title, fill: "var(--ink-2)" }),
      below,
      Plot.ruleY([0], { stroke: "var(--line-strong)" }),
      ...drawn,
    ],
  });
}

function range(axis: Axis): Plot.ScaleOptions {
  const [low, high] = [Math.min(...axis.xs), Math.max(...axis.xs)];
  if (axis.kind === "log") return { type: "log", domain: [low / 1.15, high * 1.15] };
  const room = axis.kind === "names" ? 0.5 : (high - low) * 0.04 || 1;
  return { domain: [low - room, high + room] };
}

/** Names wrap within the room of a place. */
function places({ xs, names: titles, kind }: Axis, title: string, width: number): Plot.Markish {
  const room = (width - LEFT - 20) / Math.max(1, xs.length);
  const every = kind === "names" ? 1 : Math.max(1, Math.ceil(44 / room));
  const shown = xs.filter((_, place) => place % every === 0);
  return Plot.axisX(shown, {
    tickSize: 4,
    text: (x: number) => (kind === "names" ? (titles[xs.indexOf(x)] ?? "") : tick(x)),
    lineWidth: Math.max(3, room / 9),
    label: title, labelAnchor: "center", labelArrow: "none", labelOffset: 42,
  });
}

function whiskers(points: readonly ChartPoint[], x: (point: ChartPoint) => number, stroke: (point: ChartPoint) => string): Plot.Markish {
  const known = points.filter(({ low, high }) => low !== null && high !== null);
  return Plot.ruleX(known, { x, y1: (point: ChartPoint) => Math.max(0, point.low ?? 0), y2: "high", stroke, strokeWidth: 1.5 });
}

function lines(table: StudyTable, block: TableBlock, width: number): Element {
  const axis = axisOf(block);
  const points = pointsOf(block, axis);
  const colour = ({ line }: ChartPoint) => `var(${treatmentStyle(line).variable})`;
  const each = table.columns.flatMap((_, line) => {
    const own = points.filter((point) => point.line === line).sort((a, b) => a.x - b.x);
    const { variable, dash, marker } = treatmentStyle(line);
    return [
      Plot.line(own, { x: "x", y: "mean", stroke: `var(${variable})`, strokeWidth: 2, strokeDasharray: dash.join(" ") }),
      Plot.dot(own, { x: "x", y: "mean", symbol: plotSymbol(marker), r: 4, stroke: `var(${variable})`, strokeWidth: 1.5, fill: "var(--page)" }),
    ];
  });
  return framed(table, width, range(axis), places(axis, table.rows, width), [whiskers(points, ({ x }) => x, colour), ...each], "lines");
}

function bars(table: StudyTable, block: TableBlock, width: number): Element {
  const axis: Axis = { ...axisOf(block), kind: "names", xs: block.rows.map((_, place) => place) };
  const points = pointsOf(block, axis);
  const wide = GROUP / Math.max(1, table.columns.length);
  const start = ({ place, line }: ChartPoint) => place - GROUP / 2 + line * wide;
  const box = Plot.rectY(points, {
    x1: (point: ChartPoint) => start(point) + wide * 0.06, x2: (point: ChartPoint) => start(point) + wide * 0.94,
    y1: () => 0, y2: "mean", fill: ({ line }: ChartPoint) => `var(${treatmentStyle(line).variable})`,
  });
  const whisker = whiskers(points, (point) => start(point) + wide / 2, () => "var(--ink)");
  return framed(table, width, { domain: [-0.5, block.rows.length - 0.5] }, places(axis, table.rows, width), [box, whisker], "bars");
}

function heat(table: StudyTable, block: TableBlock, width: number): Element {
  const points = pointsOf(block, { kind: "names", xs: [], names: [] });
  const top = topOf(table);
  const titles = block.rows.map(({ title }) => title);
  const left = Math.min(width * 0.3, 24 + Math.max(...titles.map(({ length }) => length)) * 7.5);
  const at = { x1: ({ line }: ChartPoint) => line, x2: ({ line }: ChartPoint) => line + 1, y1: ({ place }: ChartPoint) => place, y2: ({ place }: ChartPoint) => place + 1 };
  const middle = { x: ({ line }: ChartPoint) => line + 0.5, y: ({ place }: ChartPoint) => place + 0.5 };
  return Plot.plot({
    width,
    height: titles.length * ROW_HEIGHT + 60,
    marginTop: 36,
    marginBottom: 24,
    marginLeft: left,
    marginRight: 8,
    className: "plot",
    x: { domain: [0, table.columns.length], label: null, axis: null },
    y: { domain: [0, titles.length], reverse: true, label: null, axis: null },
    marks: [
      Plot.rect(points, { ...at, fill: "var(--t1)", fillOpacity: ({ mean }: ChartPoint) => 0.04 + 0.41 * (mean / top), inset: 1 }),
      Plot.text(points, { ...middle, text: ({ mean }: ChartPoint) => bareFigure(mean), fill: "var(--ink)" }),
      Plot.axisX(names(table).map((_, line) => line + 0.5), { anchor: "top", tickSize: 0, text: (x: number) => names(table)[Math.floor(x)] ?? "", lineWidth: Math.max(4, (width - left) / table.columns.length / 8) }),
      Plot.axisY(titles.map((_, place) => place + 0.5), { tickSize: 0, text: (y: number) => titles[Math.floor(y)] ?? "" }),
      Plot.text([table.columns_title], { frameAnchor: "bottom-right", dy: 20, text: (title: string) => title, fill: "var(--ink-2)" }),
    ],
  });
}

/** One panel of a chart, for one combination of the factors that are neither its axis nor its
 * lines. */
export function StudyChart({ chart, block }: { chart: Chart; block: TableBlock }) {
  const draw = useCallback((width: number) => ({ lines, bars, heat })[chart.form](chart.table, block, width), [chart, block]);
  return <PlotFigure draw={draw} summary={chartSummary(chart, block)} name={titleOf(chart.table, block.title)} />;
}
