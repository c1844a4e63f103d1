import { useState } from "preact/hooks";
import { typedNumber } from "../analysis/capacity.ts";
import { tps } from "../format/number.ts";
import type { CapacityDocument, CapacityQuestion } from "../model.ts";

interface Props {
  documents: readonly CapacityDocument[];
  question: CapacityQuestion;
  /** A server works out any question; a report file has the answers to some. */
  isServed: boolean;
  onAsk: (question: CapacityQuestion) => void;
}

/** Typed text of a field, and what is wrong with it. */
function wrongOf(text: string, needed: boolean): boolean {
  return text.trim() === "" ? needed : typedNumber(text) === null;
}

/** The throughputs that a report file was given answers for. */
function Stored({ documents, question, onAsk }: Omit<Props, "isServed">) {
  return (
    <fieldset class="picker">
      <legend>Transactions per second</legend>
      {documents.toSorted((a, b) => a.tps - b.tps).map((document) => (
        <label key={document.tps}>
          <input type="radio" name="capacity-tps" checked={question.tps === document.tps} onChange={() => { onAsk({ ...question, tps: document.tps }); }} />
          <span>{tps(document.tps)}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** Asks for a throughput, with a limit of response time and a price where somebody has one. */
export function CapacityForm({ documents, question, isServed, onAsk }: Props) {
  const [tps, setTps] = useState(String(question.tps));
  const [cpus, setCpus] = useState("");
  const [p99, setP99] = useState("");
  const [price, setPrice] = useState("");
  const [per, setPer] = useState<"cpu" | "host">("cpu");
  const [wrong, setWrong] = useState<string | null>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    if ((isServed && wrongOf(tps, true)) || wrongOf(cpus, false) || wrongOf(p99, false) || wrongOf(price, false)) {
      setWrong("Expected numbers above 0.");
      return;
    }
    setWrong(null);
    const an_hour = typedNumber(price);
    onAsk({ tps: isServed ? (typedNumber(tps) ?? question.tps) : question.tps, cpus: typedNumber(cpus), p99_ms: typedNumber(p99), price: an_hour === null ? null : { per, an_hour } });
  };
  const field = (name: string, value: string, set: (text: string) => void, placeholder: string) => (
    <label class="field">
      <span>{name}</span>
      <input type="text" inputMode="decimal" value={value} placeholder={placeholder} onInput={(event) => { set(event.currentTarget.value); }} />
    </label>
  );
  // CPUs alone cost by the hour; where only clients were varied there is nothing to multiply.
  const hasCpus = (documents[0]?.answer.cpu_factors.length ?? 0) > 0;
  if (!isServed && !hasCpus) return <Stored documents={documents} question={question} onAsk={onAsk} />;
  return (
    <form class="capacity-ask" noValidate onSubmit={submit}>
      {isServed ? field("Transactions per second", tps, setTps, "60000") : <Stored documents={documents} question={question} onAsk={onAsk} />}
      {isServed && hasCpus ? field("Throughput of CPUs", cpus, setCpus, "none") : null}
      {isServed ? field("p99 at most, ms", p99, setP99, "no limit") : null}
      {hasCpus ? field("Price of an hour", price, setPrice, "none") : null}
      {hasCpus ? (
        <label class="field">
          <span>It is the price of</span>
          <select value={per} onChange={(event) => { setPer(event.currentTarget.value === "host" ? "host" : "cpu"); }}>
            <option value="cpu">a CPU</option>
            <option value="host">the whole host</option>
          </select>
        </label>
      ) : null}
      <button type="submit" class="button">Work it out</button>
      <span class="attention" role="alert">{wrong}</span>
    </form>
  );
}
