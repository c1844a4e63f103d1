import { useLayoutEffect, useRef } from "preact/hooks";
import { useDisplay } from "../display.ts";
import type { Heat } from "../model.ts";
import { HeatTable } from "../parts/heat-table.tsx";
import { SaveButtons } from "../parts/save-buttons.tsx";
import { HEAT_HEIGHT, HEAT_MARGIN, heatLayout } from "./heat-layout.ts";
import { cssValue, mixed } from "./style.ts";
import { useWidth } from "./use-width.ts";

function paint(canvas: HTMLCanvasElement, heat: Heat, width: number, ylabel: string): void {
  const ratio = window.devicePixelRatio;
  canvas.width = width * ratio;
  canvas.height = HEAT_HEIGHT * ratio;
  const pen = canvas.getContext("2d");
  const layout = heatLayout(heat, width, ratio);
  if (pen === null || layout === null) return;
  pen.scale(ratio, ratio);
  const [ground, ink] = [cssValue("--page"), cssValue("--t1")];
  pen.fillStyle = ground;
  pen.fillRect(0, 0, width, HEAT_HEIGHT);
  for (const cell of layout.cells) {
    pen.fillStyle = mixed(ground, ink, cell.part);
    pen.fillRect(cell.x, cell.y, cell.width, cell.height);
  }
  pen.fillStyle = cssValue("--ink-2");
  pen.font = `12px ${cssValue("--sans")}`;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const { text, y } of layout.left) pen.fillText(text, HEAT_MARGIN.left - 6, y);
  pen.textAlign = "left";
  pen.fillText(ylabel, 4, 10);
  pen.textAlign = "center";
  for (const { text, x } of layout.below) pen.fillText(text, x, HEAT_HEIGHT - HEAT_MARGIN.bottom + 12);
  pen.fillText("since the load began", layout.middle, HEAT_HEIGHT - 8);
}

interface Props {
  heat: Heat;
  title: string;
  summary: string;
  ylabel: string;
  /** What was counted, as "transactions". */
  unit: string;
}

/** How often which response time came, over time. The darker (on a dark page: the lighter), the
 * more. */
export function HeatChart({ heat, title, summary, ylabel, unit }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(holder);
  const { theme } = useDisplay();
  useLayoutEffect(() => {
    if (canvas.current !== null && width > 0) paint(canvas.current, heat, width, ylabel);
  }, [heat, width, theme, ylabel]);
  return (
    <>
      <div class="saveable">
        <div class="chart heat-chart" ref={holder} role="img" aria-label={summary}>
          <canvas ref={canvas} />
        </div>
        <SaveButtons name={title} picture={() => (width === 0 ? null : { kind: "heat", heat, width, title, ylabel, unit })} />
      </div>
      <HeatTable heat={heat} title={title} ylabel={ylabel} />
    </>
  );
}
