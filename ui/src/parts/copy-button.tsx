import { useEffect, useRef, useState } from "preact/hooks";

type State = "idle" | "copied" | "selected";

const LABEL: Record<State, string> = { idle: "Copy", copied: "Copied", selected: "Selected: press Ctrl+C" };

/** Copies; where the browser refuses (pages opened from disk often are), selects the text for the
 * reader to copy. */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const [state, setState] = useState<State>("idle");
  const fallback = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (state === "selected") fallback.current?.select();
    if (state !== "copied") return undefined;
    const timer = setTimeout(() => {
      setState("idle");
    }, 2000);
    return () => {
      clearTimeout(timer);
    };
  }, [state]);

  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState("copied");
    } catch {
      setState("selected");
    }
  };

  return (
    <span class="copy">
      <button type="button" class="button" aria-label={`${LABEL[state]} – ${what}`} onClick={() => void copy()}>
        {LABEL[state]}
      </button>
      <span class="visually-hidden" role="status">
        {state === "idle" ? "" : LABEL[state]}
      </span>
      {state === "selected" ? (
        <textarea
          ref={fallback}
          readOnly
          rows={Math.min(8, text.split("\n").length)}
          aria-label={what}
          value={text}
          onBlur={() => {
            setState("idle");
          }}
        />
      ) : null}
    </span>
  );
}
