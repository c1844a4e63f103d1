/** How long is waited before something that failed is asked for again. */

const FIRST_MS = 1_000;
/** Who is asked again must not be kept from getting up by it. */
const MOST_MS = 30_000;

/** The pause after so many failures in a row, doubled each time. */
export function pauseAfter_ms(failures: number): number {
  return Math.min(MOST_MS, FIRST_MS * 2 ** Math.max(0, failures - 1));
}
