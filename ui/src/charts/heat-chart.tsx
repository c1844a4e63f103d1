import { useLayoutEffect, useRef } from "preact/hooks";
import { logTicks } from "../analysis/percentiles.ts";
import { useDisplay } from "../display.ts";
import { tick } from "../format/number.ts";
import { clock } from "../format/unit.ts";
import type { Heat } from "../model-trial.ts";
import { HeatTable } from "../parts/heat-table.tsx";
import { SaveButtons } from "../parts/save-buttons.tsx";
import { cssValue, mixed } from "./style.ts";
import { useWidth } from "./use-width.ts";

const HEIGHT = 260;
const MARGIN = { top: 26, right: 22, bottom: 40, left: 52 };

/** Of a narrow range every step of a decade, else 1, 2 and 5. */
function ticksOf(low: number, high: number): number[] {
  const few = logTicks([low, high]);
  if (few.length > 2) return few;
  const decade = 10 ** Math.floor(Math.log10(low));
  return Array.from({ length: 20 }, (_, step) => decade * (step + 1)).filter((ms) => ms >= low && ms <= high);
}

function paint(canvas: HTMLCanvasElement, heat: Heat, width: number, ylabel: string): void {
  const ratio = window.devicePixelRatio;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  const pen = canvas.getContext("2d");
  const [low, high] = [heat.edges_ms[0] ?? 1, heat.edges_ms.at(-1) ?? 1];
  const [first, last] = [heat.from_s ?? 0, heat.t_s.at(-1) ?? 0];
  if (pen === null || !(low > 0) || !(high > low) || !(last > first)) return;
  pen.scale(ratio, ratio);
  const ground = cssValue("--page");
  pen.fillStyle = ground;
  pen.fillRect(0, 0, width, HEIGHT);
  const [inner, tall] = [width - MARGIN.left - MARGIN.right, HEIGHT - MARGIN.top - MARGIN.bottom];
  const x = (seconds: number) => MARGIN.left + ((seconds - first) / (last - first)) * inner;
  const y = (ms: number) => MARGIN.top + tall - (Math.log(ms / low) / Math.log(high / low)) * tall;
  // On whole device pixels, else the page shines through between neighbours.
  const snap = (place: number) => Math.round(place * ratio) / ratio;
  const most = Math.max(1, ...heat.counts.map((column) => Math.max(0, ...column)));
  heat.counts.forEach((column, place) => {
    const [from, to] = [snap(x(heat.t_s[place - 1] ?? first)), snap(x(heat.t_s[place] ?? 0))];
    column.forEach((amount, level) => {
      if (!(amount > 0)) return;
      // Few among many must be seen: the tail is what a heat map is for.
      pen.fillStyle = mixed(ground, cssValue("--t1"), 0.14 + 0.86 * Math.sqrt(amount / most));
      const [top, bottom] = [snap(y(heat.edges_ms[level + 1] ?? high)), snap(y(heat.edges_ms[level] ?? low))];
      pen.fillRect(from, top, Math.max(1, to - from), Math.max(1, bottom - top));
    });
  });
  pen.fillStyle = cssValue("--ink-2");
  pen.font = `12px ${cssValue("--sans")}`;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const ms of ticksOf(low, high)) pen.fillText(tick(ms), MARGIN.left - 6, y(ms));
  pen.textAlign = "left";
  pen.fillText(ylabel, 4, 10);
  pen.textAlign = "center";
  const step = [10, 15, 30, 60, 120, 300, 600, 1800].find((each) => ((last - first) / each) * 60 < inner) ?? 3600;
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) pen.fillText(clock(at), x(at), HEIGHT - MARGIN.bottom + 12);
  pen.fillText("since the load began", MARGIN.left + inner / 2, HEIGHT - 8);
}

/** How often which response time came, over time. The darker (on a dark page: the lighter), the more. */
export function HeatChart({ heat, title, summary, ylabel }: { heat: Heat; title: string; summary: string; ylabel: string }) {
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
        <SaveButtons name={title} picture={() => (canvas.current === null ? null : { kind: "canvas", canvas: canvas.current, title })} />
      </div>
      <HeatTable heat={heat} title={title} ylabel={ylabel} />
    </>
  );
}
