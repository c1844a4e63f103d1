/** Why something cannot be shown, for the reader. Whatever fails on the way to data becomes one
 * of these. */

export type TroubleKind = "token" | "cut" | "missing" | "refused" | "damaged";

export class Trouble extends Error {
  constructor(
    readonly kind: TroubleKind,
    readonly heading: string,
    readonly advice: string,
    /** Whether it may pass by itself: then it is asked for again. */
    readonly passes = kind === "cut",
  ) {
    super(heading);
  }
}

const REFUSED: Partial<Record<number, [TroubleKind, string, string]>> = {
  401: ["token", "The server rejected the token.", "The token is missing, wrong, or older than the last start of the server. Open the link that “pgdyno serve” printed."],
  403: ["refused", "This server refuses that.", "Open the page by the link that “pgdyno serve” printed, and try again from there."],
  404: ["missing", "There is no such thing here.", "It may have been removed, or the link is of another store."],
};

/** A busy server or a locked store, and what a proxy says while there is no server behind it. Any
 * other error comes again. */
const PASSING = [502, 503, 504];

const HEADING_LENGTH_MAX = 100;

/** What an answer that is no success means; the server's own message where it has any. */
export function troubleOfStatus(status: number, error: unknown, whatToDo: unknown): Trouble {
  const [kind, heading, advice] = REFUSED[status] ?? ["refused", `The server answered with an error (${String(status)}).`, status < 500 ? "Choose something else." : "Try again; “pgdyno serve” says more in its terminal."];
  const word = (text: unknown, otherwise: string) => (typeof text === "string" && text !== "" ? text : otherwise);
  // Of a token it is said here what is known to help; of a name or an origin that is refused the
  // server knows better.
  if (kind === "token") return new Trouble(kind, heading, advice);
  const [said, help] = [word(error, heading), word(whatToDo, advice)];
  const passes = PASSING.includes(status);
  // A long sentence is not a heading.
  return said.length > HEADING_LENGTH_MAX ? new Trouble(kind, "This cannot be shown.", `${said}. ${help}`, passes) : new Trouble(kind, said, help, passes);
}

/** What the server reports of itself while it goes on, as `{error, what_to_do}`. */
export function troubleTold(data: unknown): Trouble {
  const { error, what_to_do } = (typeof data === "object" && data !== null ? data : {}) as { error?: unknown; what_to_do?: unknown };
  const texts = [error, what_to_do].filter((text) => typeof text === "string" && text !== "");
  return new Trouble("refused", "The store could not be read this time.", texts.length === 0 ? "The server does not say why." : `${texts.join("; ")}.`, true);
}

export function cut(): Trouble {
  return new Trouble("cut", "The server cannot be reached.", "The connection is cut, or “pgdyno serve” has ended. Start it again and open the link that it prints.");
}

export function asTrouble(error: unknown): Trouble {
  if (error instanceof Trouble) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new Trouble("damaged", "These measurements could not be shown.", `Something in them is not as it should be (${message}).`);
}
