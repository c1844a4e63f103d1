/** How long what a test waits for may take before it counts as hanging. Far longer than a busy
 * host needs: it decides nothing else. */
export const PATIENCE_MS = 300_000;
