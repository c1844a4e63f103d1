import * as Plot from "@observablehq/plot";
import { useCallback } from "preact/hooks";
import { tpsDomain, usesLog, uslLine, xRange, zoneBand, zoneInWords, type LinePoint } from "../analysis/curves.ts";
import { tick, tps } from "../format/number.ts";
import { milliseconds } from "../format/span.ts";
import { axisTick } from "../format/unit.ts";
import type { Curve, CurvePoint } from "../model.ts";
import { PlotFigure } from "./plot-figure.tsx";

const HEIGHT = 300;
const P99_HEIGHT = 200;
const MARGIN = { top: 28, bottom: 44, left: 60, right: 24 };

export function curveSummary({ x, points, zone }: Curve): string {
  const parts = points.map((point) => `${tick(point.x)} ${x}: ${tps(point.tps.mean)} TPS, p99 ${milliseconds(point.p99_ms?.mean)}`);
  const happy = zone === null ? "" : ` Happy zone: ${zoneInWords(zone)}.`;
  return `Throughput and response time over ${x}. ${parts.join("; ")}.${happy}`;
}

/** Measured x far enough apart to be read. */
function ticks(points: readonly CurvePoint[], width: number): number[] {
  const room = Math.max(2, Math.floor(width / 56));
  const every = Math.ceil(points.length / room);
  return points.map(({ x }) => x).filter((_, place) => place % every === 0);
}

function xScale(points: readonly CurvePoint[]): Plot.ScaleOptions {
  const [low, high] = xRange(points);
  if (usesLog(points)) return { type: "log", domain: [low / 1.15, high * 1.15], label: null };
  const room = (high - low) * 0.04 || 1;
  return { domain: [low - room, high + room], label: null };
}

function base(curve: Curve, width: number, height: number): Plot.PlotOptions {
  return {
    width,
    height,
    marginTop: MARGIN.top,
    marginBottom: MARGIN.bottom,
    marginLeft: MARGIN.left,
    marginRight: MARGIN.right,
    className: "plot",
    x: xScale(curve.points),
  };
}

function frame(curve: Curve, width: number, label: string): Plot.Markish[] {
  const band = zoneBand(curve);
  return [
    Plot.rectX(band === null ? [] : [band], { x1: (zone: [number, number]) => zone[0], x2: (zone: [number, number]) => zone[1], fill: "var(--shade)" }),
    Plot.gridY({ stroke: "var(--line)", strokeOpacity: 1, ticks: 5 }),
    Plot.axisY({ ticks: 5, tickSize: 0, tickFormat: axisTick, label, labelAnchor: "top", labelArrow: "none", labelOffset: MARGIN.left - 8 }),
    // A format would omit what is no round number on a logarithmic axis.
    Plot.axisX(ticks(curve.points, width), { tickSize: 4, text: (x: number) => tick(x), label: curve.x, labelAnchor: "center", labelArrow: "none", labelOffset: 38 }),
  ];
}

function throughput(curve: Curve, width: number): Element {
  const band = zoneBand(curve);
  const line = "var(--t2)";
  const point = { x: "x", y: (each: CurvePoint) => each.tps.mean } as const;
  return Plot.plot({
    ...base(curve, width, HEIGHT),
    y: { domain: tpsDomain(curve), label: null },
    marks: [
      ...frame(curve, width, "throughput, TPS"),
      Plot.text(band === null ? [] : ["happy zone"], {
        x: () => (band === null ? 0 : usesLog(curve.points) ? Math.sqrt(band[0] * band[1]) : (band[0] + band[1]) / 2),
        frameAnchor: "top", dy: -10, text: (word: string) => word, fill: "var(--ink-2)", fontSize: 12,
      }),
      Plot.line(uslLine(curve), { x: "x", y: (each: LinePoint) => each.tps, stroke: line, strokeWidth: 2, strokeDasharray: "6 3" }),
      Plot.ruleX(curve.points, { x: "x", y1: (each: CurvePoint) => Math.max(0, each.tps.low), y2: (each: CurvePoint) => each.tps.high, stroke: "var(--t1)", strokeWidth: 1.5 }),
      Plot.dot(curve.points, { ...point, r: 4, stroke: "var(--t1)", strokeWidth: 2, fill: "var(--page)" }),
    ],
  });
}

function responseTime(curve: Curve, width: number): Element {
  const known = curve.points.flatMap(({ x, p99_ms }) => (p99_ms === null ? [] : [{ x, ...p99_ms }]));
  const top = Math.max(1e-9, ...known.map(({ high }) => high));
  return Plot.plot({
    ...base(curve, width, P99_HEIGHT),
    y: { domain: [0, top * 1.08], label: null },
    marks: [
      ...frame(curve, width, "p99 response time, ms"),
      Plot.line(known, { x: "x", y: "mean", stroke: "var(--t3)", strokeWidth: 2 }),
      Plot.ruleX(known, { x: "x", y1: "low", y2: "high", stroke: "var(--t3)", strokeWidth: 1.5 }),
      Plot.dot(known, { x: "x", y: "mean", r: 4, symbol: "square", stroke: "var(--t3)", strokeWidth: 2, fill: "var(--page)" }),
    ],
  });
}

/** Throughput with its law, response time below it, on one axis; the happy zone is shaded in
 * both. */
export function CurveChart({ curve }: { curve: Curve }) {
  const draw = useCallback(
    (width: number) => {
      const both = document.createElement("div");
      both.append(throughput(curve, width));
      if (curve.points.some(({ p99_ms }) => p99_ms !== null)) both.append(responseTime(curve, width));
      return both;
    },
    [curve],
  );
  return <PlotFigure draw={draw} summary={curveSummary(curve)} name={`Throughput and response time over ${curve.x}`} />;
}
