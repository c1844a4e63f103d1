import type uPlot from "uplot";
import type { Stretch } from "../analysis/steady.ts";
import { cssValue, mixed } from "../charts/style.ts";
import { byteSteps, clock, ticksWithUnit } from "../format/unit.ts";
import type { Mark } from "../model.ts";
import type { TimeAxis } from "./axis.ts";
import { behindLines } from "./draw-marks.ts";
import type { LineStyle, Panel } from "./panels.ts";
import { takeSelection, zoomCursor, zoomScale } from "./zoom.ts";

export const HEIGHT = 168;
const AXIS_WIDTH = 64;
const COLOURS = 8;
const DASHES: number[][] = [[], [6, 3], [2, 2.5], [10, 3, 2, 3], [14, 4], [4, 4], [7, 3, 2, 3, 2, 3], [1, 3]];

/** Colour and dash of a line by its place in the panel; stacks are distinguished by colour and
 * order. */
export function lineStyle(place: number): LineStyle {
  return { variable: `--t${String((place + 1) % COLOURS)}`, dash: DASHES[place % DASHES.length] ?? [] };
}

export function styleOf({ styles }: Panel, place: number): LineStyle {
  return styles?.[place] ?? lineStyle(place);
}

interface Wanted {
  panel: Panel;
  axis: TimeAxis;
  marks: readonly Mark[];
  warmup_s: number;
  unsettled: Stretch | null;
  width: number;
  /** Charts of one trial share their pointer by this name. */
  group: string;
  onCursor: (index: number | null) => void;
}

/** Only where the pointer is goes from chart to chart; what is dragged out goes by the axis. */
function sync(group: string): uPlot.Cursor.Sync {
  const moves = (type: string) => type === "mousemove" || type === "mouseleave";
  return { key: group, setSeries: false, scales: ["x", null], filters: { pub: moves, sub: moves } };
}

/** Areas are large: they take less of the colour than a line does. */
function softened(colour: string): string {
  return mixed(cssValue("--page"), colour, 0.72);
}

/** Beyond so many points dashes are too short to be distinguished, and take most of the time of
 * drawing. */
export const DASHED_MAX = 800;

function seriesOf(panel: Panel): uPlot.Series[] {
  const { lines, stacked } = panel;
  return lines.map((line, place) => {
    const { variable, dash } = styleOf(panel, place);
    const colour = cssValue(variable);
    const fill = stacked ? { fill: softened(colour) } : {};
    return {
      label: line.title,
      stroke: stacked ? cssValue("--page") : colour,
      width: 1,
      dash: stacked || line.values.length > DASHED_MAX ? [] : dash,
      points: { show: false },
      spanGaps: false,
      ...fill,
    };
  });
}

function axesOf(unit: string): uPlot.Axis[] {
  const font = `12px ${cssValue("--sans")}`;
  const common = { stroke: cssValue("--ink-2"), font, ticks: { show: false } };
  const steps = unit.startsWith("bytes") ? { incrs: byteSteps() } : {};
  return [
    { ...common, grid: { show: false }, size: 26, space: 70, incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400], values: (_, ticks) => ticks.map(clock) },
    { ...common, ...steps, grid: { stroke: cssValue("--line"), width: 1 }, size: AXIS_WIDTH, space: 34, values: (_, ticks) => ticksWithUnit(ticks, unit) },
  ];
}

/** Drags look closer on all charts, a double click shows everything again. */
export function panelOptions({ panel, axis, marks, warmup_s, unsettled, width, group, onCursor }: Wanted): uPlot.Options {
  return {
    width,
    height: panel.height ?? HEIGHT,
    legend: { show: false },
    padding: [8, 20, 0, 0],
    cursor: { ...zoomCursor(axis), sync: sync(group) },
    scales: {
      x: zoomScale(axis),
      y: { range: (_chart, low, high) => [Math.min(0, low), high > 0 ? high * 1.06 : low < 0 ? 0 : 1] },
    },
    axes: axesOf(panel.unit),
    // The sums of a stack are drawn from the highest down: each is drawn over the one above it.
    series: [{}, ...(panel.stacked ? seriesOf(panel).toReversed() : seriesOf(panel))],
    hooks: {
      drawClear: [behindLines(marks, warmup_s, unsettled)],
      setCursor: [
        (chart) => {
          onCursor(chart.cursor.idx ?? null);
        },
      ],
      setSelect: [takeSelection(axis)],
    },
  };
}
