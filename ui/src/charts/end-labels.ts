import uPlot from "uplot";
import { spreadLabels } from "../analysis/spread.ts";
import { isKnown } from "../format/number.ts";
import type { Treatment } from "../model.ts";
import { cssValue, treatmentStyle } from "./style.ts";
import { scaled } from "./time-marks.ts";

/** Room behind the lines for their names, in CSS pixels. */
export const LABEL_ROOM = 150;
/** So many last values in view decide where a name is; one alone would follow the noise. */
const TAIL = 15;

/** The mean of the last values in view of some columns, null where there are none. */
function tailMean({ series, data }: uPlot, columns: readonly number[]): number | null {
  const [, last] = series[0]?.idxs ?? [0, 0];
  let [sum, amount] = [0, 0];
  for (const column of columns) {
    const values = data[column + 1] ?? [];
    for (let at = Math.max(0, last - TAIL); at <= last; at += 1) {
      const value = values[at];
      if (!isKnown(value)) continue;
      sum += value;
      amount += 1;
    }
  }
  return amount === 0 ? null : sum / amount;
}

/** Shortens a name until it fits; a canvas would let it run out of the picture. */
function fitted(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  let shown = text;
  while (shown.length > 1 && ctx.measureText(shown).width > room) shown = `${shown.replace(/…$/, "").slice(0, -1).trimEnd()}…`;
  return shown;
}

/** Writes each treatment's name at the end of its lines, which distinguishes them without colour.
 * `places` gives for each column where its treatment is in the plan. What does not change from
 * one drawing to the next is worked out here, once. */
export function endLabels(places: readonly number[], plan: readonly Treatment[], font: string, where: "behind" | "inside"): (chart: uPlot) => void {
  const groups = [...new Set(places)].map((place) => ({
    columns: places.flatMap((each, column) => (each === place ? [column] : [])),
    title: plan[place]?.title ?? "",
    colour: cssValue(treatmentStyle(place).variable),
  }));
  const ground = cssValue("--page");
  const shift = where === "behind" ? { x: 8, y: 0 } : { x: -4, y: 20 };
  const names = new Map<string, string>();
  return (chart) => {
    const { ctx, bbox } = chart;
    const ratio = uPlot.pxRatio;
    const labels = groups.flatMap((group) => {
      const mean = tailMean(chart, group.columns);
      return mean === null ? [] : [{ group, y: chart.valToPos(mean, "y", true) }];
    });
    const spots = spreadLabels(labels.map(({ y }) => y), 16 * ratio, bbox.top, bbox.top + bbox.height);
    ctx.save();
    ctx.font = scaled(font, "600");
    ctx.textAlign = where === "behind" ? "left" : "right";
    ctx.textBaseline = "middle";
    ctx.lineWidth = 4 * ratio;
    ctx.lineJoin = "round";
    ctx.strokeStyle = ground;
    const nameOf = (title: string) => {
      const key = `${String(ratio)} ${title}`;
      const name = names.get(key) ?? fitted(ctx, title, (LABEL_ROOM - 10) * ratio);
      names.set(key, name);
      return name;
    };
    labels.forEach(({ group: { title, colour } }, rank) => {
      ctx.fillStyle = colour;
      const x = bbox.left + bbox.width + shift.x * ratio;
      const y = (spots[rank] ?? bbox.top) + shift.y * ratio;
      ctx.strokeText(nameOf(title), x, y);
      ctx.fillText(nameOf(title), x, y);
    });
    ctx.restore();
  };
}
