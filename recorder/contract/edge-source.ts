// How a camera replays the footage that it keeps itself: over ONVIF, or at addresses with the places `{start}` and `{end}` for times, in
// the form that the camera expects.

/** How a camera replays its footage. */
export type EdgeSource =
  /** `recording`: the token of the recording that belongs to this camera, if the device has recordings of several. */
  | { readonly kind: 'onvif'; readonly recording: string | undefined }
  /** `replay`: an address with places for times; `timeZone`: whose wall clock these show, UTC if undefined. */
  | { readonly kind: 'address'; readonly replay: string; readonly timeZone: string | undefined };

/** A place for a time, with its form if it is not the usual one, such as `{start:yyyy_MM_dd_HH_mm_ss}`. */
export const PLACE = /\{(start|end)(?::([^{}]*))?\}/g;
/** Hikvision's form. */
export const USUAL_FORM = 'yyyyMMddTHHmmssZ';
export const PART = /yyyy|MM|dd|HH|mm|ss/g;

/** Why a pattern is invalid; undefined if it is valid. */
export function addressFault(pattern: string): string | undefined {
  const places = [...pattern.matchAll(PLACE)];
  for (const name of ['start', 'end']) {
    if (!places.some((place) => place[1] === name)) return `expected {${name}} in the address`;
  }
  for (const [place, , form = USUAL_FORM] of places) {
    const parts = form.match(PART) ?? [];
    if (new Set(parts).size !== 6) return `expected yyyy, MM, dd, HH, mm and ss in ${place}`;
    if (!/^[\w.:+-]+$/.test(form)) return `expected letters, digits and . : + - _ in ${place}`;
  }
  return undefined;
}
