/** Moves labels apart so that neighbours are at least `gap` from each other, each as near as may
 * be to where it belongs, none outside of low..high while there is room. Gives the new places in
 * the order of `wanted`. */
export function spreadLabels(wanted: readonly number[], gap: number, low: number, high: number): number[] {
  const order = wanted.map((place, index) => ({ place, index })).toSorted((a, b) => a.place - b.place);
  const placed: number[] = [];
  order.forEach(({ place }, rank) => {
    const below = placed[rank - 1];
    placed.push(Math.max(place, below === undefined ? low : below + gap));
  });
  let ceiling = high;
  for (let rank = placed.length - 1; rank >= 0; rank -= 1) {
    const place = Math.min(placed[rank] ?? ceiling, ceiling);
    placed[rank] = place;
    ceiling = place - gap;
  }
  const result = new Array<number>(wanted.length).fill(0);
  order.forEach(({ index }, rank) => {
    result[index] = placed[rank] ?? 0;
  });
  return result;
}
