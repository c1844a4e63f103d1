import { useState } from "preact/hooks";
import { savePicture, type Picture, type PictureFormat } from "../pictures/save.ts";

const FORMATS: readonly PictureFormat[] = ["png", "svg"];

/** Saves a chart as it is at the moment. */
export function SaveButtons({ name, picture }: { name: string; picture: () => Picture | null }) {
  const [failed, setFailed] = useState(false);
  const save = (format: PictureFormat) => {
    const found = picture();
    if (found === null) return;
    setFailed(false);
    savePicture(found, format).catch(() => {
      setFailed(true);
    });
  };
  return (
    <span class="save">
      {FORMATS.map((format) => (
        <button key={format} type="button" class="button-bare" aria-label={`Save as ${format.toUpperCase()}: ${name}`} onClick={() => { save(format); }}>
          {format.toUpperCase()}
        </button>
      ))}
      <span role="status">{failed ? "This browser could not make the picture." : ""}</span>
    </span>
  );
}
