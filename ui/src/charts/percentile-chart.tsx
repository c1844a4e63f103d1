import * as Plot from "@observablehq/plot";
import { useCallback } from "preact/hooks";
import { logTicks, NAMED_PERCENTILES, namedPoints, nines, percentileCurve, type PercentilePoint } from "../analysis/percentiles.ts";
import { spreadLabels } from "../analysis/spread.ts";
import { tick } from "../format/number.ts";
import { milliseconds } from "../format/span.ts";
import { plotSymbol } from "./markers.ts";
import { PlotFigure } from "./plot-figure.tsx";
import { treatmentStyle } from "./style.ts";

const HEIGHT = 380;
const MARGIN = { top: 26, bottom: 44, left: 52 };
const LABEL_GAP = 16;
/** From this width on there is room for long names. */
const WIDE = 1400;
/** Pixels of a line's end for one em of Plot's reckoning, which knows nothing of bold letters. */
const LETTERS_PX = 17;

/** Something with a distribution of response times: a treatment, a trial, a side of a
 * comparison. */
export interface Distributed {
  name: string;
  title: string;
  distribution: readonly { percentile: number; ms: number }[];
}

interface Line {
  treatment: Distributed;
  index: number;
  curve: PercentilePoint[];
}

export function percentilesSummary(lines: readonly Line[]): string {
  const parts = lines.map(({ treatment, curve }) => {
    const points = namedPoints(curve).map(({ percentile, ms }) => `p${String(percentile)} ${milliseconds(ms)}`);
    return `${treatment.title}: ${points.join(", ")}`;
  });
  return `Response time by percentile. ${parts.join("; ")}.`;
}

/** Ends of the lines in pixels, moved apart where they would cover each other. */
function endLabels(lines: readonly Line[], [low, high]: [number, number]): { title: string; y: number; colour: string }[] {
  const span = Math.log(high / low);
  const bottom = HEIGHT - MARGIN.bottom;
  const wanted = lines.map(({ curve }) => bottom - (Math.log((curve.at(-1)?.ms ?? low) / low) / span) * (bottom - MARGIN.top));
  const places = spreadLabels(wanted, LABEL_GAP, MARGIN.top, bottom);
  return lines.map(({ treatment, index }, rank) => ({
    title: treatment.title,
    y: places[rank] ?? bottom,
    colour: `var(${treatmentStyle(index).variable})`,
  }));
}

/** Response time against percentile; every further nine has the same room, since that is where
 * the trouble is. */
export function PercentileChart({ treatments, plan }: { treatments: readonly Distributed[]; plan: readonly Distributed[] }) {
  const lines: Line[] = treatments
    .map((treatment) => ({ treatment, index: plan.indexOf(treatment), curve: percentileCurve(treatment) }))
    .filter(({ curve }) => curve.length > 1);
  const key = lines.map(({ treatment }) => treatment.name).join("\n");

  const draw = useCallback(
    (width: number) => {
      const narrow = width < 640;
      const marginRight = narrow ? 24 : width < WIDE ? 190 : 320;
      const values = lines.flatMap(({ curve }) => curve.map(({ ms }) => ms));
      const domain: [number, number] = [Math.min(...values) / 1.15, Math.max(...values) * 1.15];
      return Plot.plot({
        width,
        height: HEIGHT,
        marginTop: MARGIN.top,
        marginBottom: MARGIN.bottom,
        marginLeft: MARGIN.left,
        marginRight,
        className: "plot",
        x: { domain: [nines(50), nines(99.99)], label: null },
        y: { type: "log", domain, label: null },
        marks: [
          Plot.gridY(logTicks(domain), { stroke: "var(--line)", strokeOpacity: 1 }),
          Plot.axisY(logTicks(domain), { tickSize: 0, tickFormat: tick, label: "response time, ms", labelAnchor: "top", labelArrow: "none", labelOffset: MARGIN.left - 8 }),
          Plot.axisX(NAMED_PERCENTILES.map(nines), {
            tickSize: 4,
            tickFormat: (_: number, index: number) => String(NAMED_PERCENTILES[index] ?? ""),
            label: "percentile of transactions", labelAnchor: "center", labelArrow: "none", labelOffset: 38,
          }),
          ...lines.flatMap(({ curve, index }) => {
            const { variable, dash, marker } = treatmentStyle(index);
            const stroke = `var(${variable})`;
            return [
              Plot.line(curve, { x: "nines", y: "ms", stroke, strokeWidth: 2, strokeDasharray: dash.join(" "), clip: true }),
              Plot.dot(namedPoints(curve), { x: "nines", y: "ms", r: 4, symbol: plotSymbol(marker), stroke, strokeWidth: 1.5, fill: "var(--page)" }),
            ];
          }),
          ...(narrow
            ? []
            : endLabels(lines, domain).map(({ title, y, colour }) =>
                Plot.text([title], { frameAnchor: "top-right", textAnchor: "start", dx: 12, dy: y - MARGIN.top, lineAnchor: "middle", text: (name: string) => name, fill: colour, fontWeight: 600, lineWidth: (marginRight - 12) / LETTERS_PX, textOverflow: "ellipsis" }),
              )),
        ],
      });
    },
    // The lines are made again on every call; what they show changes only with these.
    [key, plan],
  );

  if (lines.length === 0) return <p class="empty">No response-time distribution was recorded for the chosen treatments.</p>;
  return <PlotFigure draw={draw} summary={percentilesSummary(lines)} name="Response time by percentile" />;
}
