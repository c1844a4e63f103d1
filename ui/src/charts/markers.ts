/** Markers as outlines around the origin, so that the chart and its legend draw one and the same
 * shape. */

type Point = readonly [number, number];

function regular(corners: number, turn: number, radius: (corner: number) => number): Point[] {
  return Array.from({ length: corners }, (_, corner) => {
    const angle = (corner / corners) * 2 * Math.PI + turn;
    return [radius(corner) * Math.cos(angle), radius(corner) * Math.sin(angle)] as const;
  });
}

const UP = -Math.PI / 2;
const ARM = 0.38;

const OUTLINES: readonly (readonly Point[])[] = [
  regular(24, 0, () => 1),
  regular(4, Math.PI / 4, () => 1.25),
  regular(3, UP, () => 1.35),
  regular(4, 0, () => 1.4),
  [
    [-ARM, -1.2], [ARM, -1.2], [ARM, -ARM], [1.2, -ARM], [1.2, ARM], [ARM, ARM],
    [ARM, 1.2], [-ARM, 1.2], [-ARM, ARM], [-1.2, ARM], [-1.2, -ARM], [-ARM, -ARM],
  ],
  regular(10, UP, (corner) => (corner % 2 === 0 ? 1.5 : 0.65)),
  regular(3, -UP, () => 1.35),
  regular(6, UP, () => 1.2),
];

function outline(index: number, radius: number): Point[] {
  const points = OUTLINES[index % OUTLINES.length] ?? [];
  return points.map(([x, y]) => [x * radius, y * radius] as const);
}

interface Pen {
  moveTo: (x: number, y: number) => void;
  lineTo: (x: number, y: number) => void;
  closePath: () => void;
}

/** In the form that Observable Plot takes for a symbol of one's own: `size` is an area in square
 * pixels. */
export function plotSymbol(index: number): { draw: (pen: Pen, size: number) => void } {
  return {
    draw(pen, size) {
      outline(index, Math.sqrt(size / Math.PI)).forEach(([x, y], corner) => {
        if (corner === 0) pen.moveTo(x, y);
        else pen.lineTo(x, y);
      });
      pen.closePath();
    },
  };
}

/** The same shape as an SVG path. */
export function markerPath(index: number, radius: number): string {
  return `M${outline(index, radius)
    .map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`)
    .join("L")}Z`;
}
