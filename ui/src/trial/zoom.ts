import type uPlot from "uplot";
import type { TimeAxis } from "./axis.ts";

/** Less is a click that slipped, in CSS pixels. */
const DRAGGED_MIN = 4;

/** What is dragged out goes by the axis, so that it outlives the chart; a double click shows
 * everything again. */
export function zoomCursor(axis: TimeAxis): uPlot.Cursor {
  return {
    y: false,
    points: { show: false },
    drag: { x: true, y: false, setScale: false },
    bind: {
      dblclick: () => () => {
        axis.look(null);
        return null;
      },
    },
  };
}

export function zoomScale(axis: TimeAxis): uPlot.Scale {
  const [min, max] = axis.range ?? axis.whole;
  return { time: false, auto: false, min, max };
}

/** A hook for what was dragged out. */
export function takeSelection(axis: TimeAxis): (chart: uPlot) => void {
  return (chart) => {
    const { left, width } = chart.select;
    if (width < DRAGGED_MIN) return;
    const range = [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")] as const;
    chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    axis.look(range);
  };
}
